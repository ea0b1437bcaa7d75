"""Tests of Leadline itself."""
