"""Overlaps of a learner's vector with the truth, and the two errors they give."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

__all__ = ["Overlaps", "angle", "distance", "overlaps"]


class Overlaps(NamedTuple):
    """Order parameters of one vector: R = J·B/N and Q = |J|²/N."""

    R: float
    Q: float

    @property
    def angle(self) -> float:
        """Φ, see :func:`angle`."""
        return float(angle(self.R, self.Q))

    @property
    def distance(self) -> float:
        """Δ, see :func:`distance`."""
        return float(distance(self.R, self.Q))


def overlaps(J: ArrayLike, B: ArrayLike) -> Overlaps:
    """R and Q of a vector J against the truth B, both in the paper's scale |B|² = N.

    >>> overlaps([1.0, 0.0], [1.0, 1.0])
    Overlaps(R=0.5, Q=0.5)
    """
    j = np.asarray(J, dtype=np.float64).ravel()
    b = np.asarray(B, dtype=np.float64).ravel()
    if j.shape != b.shape:
        raise ValueError(f"J has {j.size} coordinates, B has {b.size}")
    return Overlaps(float(j @ b) / j.size, float(j @ j) / j.size)


def angle(R: ArrayLike, Q: ArrayLike) -> Any:
    """Direction error Φ = arccos(R/√Q)/π (Eq. phi); 1/2 where the vector vanishes.

    >>> round(float(angle(0.98694, 0.98471)), 5)
    0.03318
    """
    R, Q = np.asarray(R, dtype=np.float64), np.asarray(Q, dtype=np.float64)
    norm = np.sqrt(np.maximum(Q, 0.0))
    cosine = np.divide(R, norm, out=np.zeros(np.broadcast(R, norm).shape), where=norm > 0.0)
    return (np.arccos(np.clip(cosine, -1.0, 1.0)) / np.pi)[()]


def distance(R: ArrayLike, Q: ArrayLike) -> Any:
    """Squared distance to the truth per coordinate, Δ = Q - 2R + 1.

    >>> float(distance(1.0, 1.0))
    0.0
    """
    return (np.asarray(Q, dtype=np.float64) - 2.0 * np.asarray(R, dtype=np.float64) + 1.0)[()]
