"""A number and the interval that it lies in, with a stated probability."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["LEVEL", "Estimate"]

LEVEL = 0.9
"""Probability that an interval is meant to hold the truth."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with its 90 % interval.

    >>> Estimate(0.8, 0.76, 0.83)
    0.8 (0.76 to 0.83)
    >>> 0.77 in Estimate(0.8, 0.76, 0.83)
    True
    """

    value: float
    low: float
    high: float

    def __contains__(self, number: float) -> bool:
        return self.low <= number <= self.high

    def map(self, function: Any) -> Estimate:
        """Apply a monotone function to the value and to both ends."""
        ends = sorted((float(function(self.low)), float(function(self.high))))
        return Estimate(float(function(self.value)), *ends)

    def to_dict(self) -> dict[str, float]:
        """Return value, low and high."""
        return {"value": self.value, "low": self.low, "high": self.high}

    def __repr__(self) -> str:
        return f"{self.value:.3g} ({self.low:.3g} to {self.high:.3g})"
