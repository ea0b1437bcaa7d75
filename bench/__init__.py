"""Benchmarks: each prints one JSON object, with ratios taken within one run."""
