"""The subcommands of `leadline`, one module each."""
