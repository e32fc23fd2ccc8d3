"""Few examples in many dimensions: every centre lies in the span of the rows, so only inner products matter.

With Z the folded rows, Z Z^T = L L^T (pivoted Cholesky). The rows of L have the inner products of the rows of
Z in at most P dimensions: the same engine runs on them, and the centre it finds is carried back by its
weights.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg.lapack import dpstrf

from outlearn.inference.rows import Rows
from outlearn.inference.selection import Selection, State, Step

__all__ = ["Reduction"]

Array = NDArray[np.float64]
_BLOCK_BYTES = 4 << 20


class Reduction:
    """A fitting problem in the coordinates of the span of its rows."""

    def __init__(self, full: Selection, rows: Rows) -> None:
        self.full = full
        self._factor = _factor(_gram(rows))
        reads = Rows.of(self._factor, sample_weight=rows.sample_weight, n_threads=rows.n_threads)
        self.problem = Selection(reads, hard=full.hard, learn=full.learn, n_features=full.n_features)

    @classmethod
    def where_it_pays(cls, full: Selection, n_starts: int) -> Reduction | None:
        """Reduce dense data of few rows: P <= N/10, or P <= N/2 where eight or more starts share it."""
        rows = full.reads
        p, n = rows.shape
        if not isinstance(rows, Rows) or sparse.issparse(rows.X):
            return None
        if not (10 * p <= n or (2 * p <= n and n_starts >= 8)):
            return None
        return cls(full, rows)

    def enter(self, states: list[State]) -> list[tuple[Step, State]]:
        """Take one EM step from any centres, in one read; where they lead is given in the span."""
        weights = np.ones((self.full.reads.shape[0], len(states)))
        steps = self.full.read(states, weights)
        sums = (self.full.counts[:, None] * weights).T @ self._factor
        return [
            (step, replace(step.next, center=total_sum / _divisor(step)))
            for step, total_sum in zip(steps, sums, strict=True)
        ]

    def leave(self, step: Step) -> State:
        """Return ``step.next`` with its centre among the data's own coordinates; one read."""
        weights = self.problem.weigh(step.state)[1]
        return replace(step.next, center=self.full.reads.weighted_sums(weights[:, None])[0] / _divisor(step))


def _divisor(step: Step) -> float:
    return step.total_weight + step.state.noise_variance / step.state.center_variance


def _gram(rows: Rows) -> Array:
    """Inner products of the folded rows, summed in float64 over blocks of columns; one read."""
    p, n = rows.shape
    total = np.zeros((p, p))
    width = max(1, _BLOCK_BYTES // (8 * p))
    for first in range(0, n, width):
        block = rows.X[:, first : first + width].astype(np.float64)
        if rows.center is not None:
            block -= rows.center[first : first + width]
        total += block @ block.T
    if rows.signs is not None:
        total *= rows.signs
        total *= rows.signs[:, None]
    rows.n_reads += 1
    return total


def _factor(gram: Array) -> Array:
    """L of L L^T = gram, with as many columns as gram has rank."""
    if not gram.any():
        return np.zeros((len(gram), 1))
    factor, pivots, rank, _ = dpstrf(gram, lower=1)
    rows = np.empty((len(gram), rank))
    rows[pivots - 1] = np.tril(factor)[:, :rank]
    return rows
