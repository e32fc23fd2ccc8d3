"""Diagnose and plan: the theory applied to real data."""
