"""Numerics without physics: averages, proximal operators, root finding, continuation."""
