"""Every run, cell, verdict, slice and kernel event in one SQLite file."""
