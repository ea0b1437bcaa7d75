"""The suite: run against drives. `--pyargs leadline.suite` finds it where Leadline is installed."""
