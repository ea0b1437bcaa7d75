"""Outlets, switched and verified."""
