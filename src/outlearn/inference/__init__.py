"""Algorithms on arrays, in raw units; no scikit-learn here."""
