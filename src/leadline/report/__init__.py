"""What a person or a machine reads after a run."""
