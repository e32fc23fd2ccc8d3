"""Finite-size campaigns: many runs, reproducible and resumable."""
