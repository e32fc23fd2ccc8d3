"""Standard units: what brings features to one scale, where they differ by more than chance."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

__all__ = ["Units"]

Array = NDArray[np.float64]
Labels = NDArray[np.intp]

_BLOCK = 2**18  # numbers in double precision at a time
_SAME_SCALE = 1.5  # sampling errors by which log variances may scatter and still count as equal


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Units:
    """Standard units: one scale for all features where their variances differ by chance only."""

    center: Array
    scale: Array

    @classmethod
    def of(cls, X: Any, labels: Labels, weights: Array) -> Units:
        """Mean and standard deviation of every feature; sparse data are not centred.

        The signal adds to a feature's variance in proportion to that between labels. That much is no
        difference in scale: it is regressed out before scales are compared.
        """
        total = float(weights.sum())
        members = np.zeros((len(labels), labels.max() + 1))
        members[np.arange(len(labels)), labels] = weights
        counts = members.sum(axis=0)
        sums = np.zeros((X.shape[1], len(counts)))
        for rows in _blocks(X):
            sums += np.asarray(X[rows].T @ members[rows], dtype=np.float64)
        mean = sums.sum(axis=1) / total
        between = (sums**2 / np.maximum(counts, 1e-300)).sum(axis=1) / total - mean**2
        if sparse.issparse(X):
            square = np.asarray(X.multiply(X).T @ weights, dtype=np.float64).ravel() / total
            variance = np.maximum(square - mean**2, 1e-12 * square)
            mean = np.zeros_like(mean)
        else:
            variance = sum(weights[rows] @ (X[rows] - mean) ** 2 for rows in _blocks(X)) / total
        rest = variance - _slope(between, variance) * between
        logs = np.log(np.maximum(rest, 1e-3 * variance))
        if logs.std() < _SAME_SCALE * np.sqrt(2.0 / total):
            variance = np.full_like(variance, np.exp(logs.mean()))
        return cls(center=mean, scale=np.sqrt(variance))

    @property
    def log_volume(self) -> float:
        """Sum of ln scale."""
        return float(np.log(self.scale).sum())

    def inward(self, X: Any) -> Any:
        """Data in standard units: one copy, single precision if they came so."""
        if sparse.issparse(X):
            return (X @ sparse.diags(1.0 / self.scale)).tocsr()
        Z = np.empty_like(X, dtype=np.float32 if X.dtype == np.float32 else np.float64)
        for rows in _blocks(X):
            Z[rows] = (X[rows] - self.center) / self.scale
        return Z

    def outward(self, coef: Array, intercept: Array) -> tuple[Array, Array]:
        """Turn a linear rule in standard units into one in the units of the data."""
        coef = coef / self.scale
        return coef, intercept - coef @ self.center


def _blocks(X: Any) -> Iterator[slice]:
    """Rows in parts that are small beside the data."""
    step = X.shape[0] if sparse.issparse(X) else max(1, _BLOCK // X.shape[1])
    return (slice(start, start + step) for start in range(0, X.shape[0], step))


def _slope(x: Array, y: Array) -> float:
    """Slope of y over x, never negative."""
    x = x - x.mean()
    return max(0.0, float(x @ y) / max(float(x @ x), 1e-300))
