"""Data integrity: writes that name themselves, what a drive may answer, and what it did answer."""
