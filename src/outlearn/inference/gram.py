"""Few examples in many dimensions: every centre lies in the span of the rows, so only inner products matter.

With Z the folded rows, Z Z^T = L L^T (pivoted Cholesky). The rows of L have the inner products of the rows of
Z in at most P dimensions: the same engine runs on them, and the centre it finds is carried back by its
weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg.lapack import dpstrf

from outlearn.inference.rows import Reads, Rows
from outlearn.inference.selection import Selection, State, Step

__all__ = ["Reduction"]

Array = NDArray[np.float64]
_BLOCK_BYTES = 4 << 20
_ROUNDS_OF_SEVERAL = 20  # of all starts, that several starts cost at least


class Reduction:
    """A fitting problem in the coordinates of the span of its rows."""

    def __init__(self, full: Selection, rows: Rows) -> None:
        self.full = full
        self._factor = _factor(_gram(rows))
        reads = Rows.of(self._factor, sample_weight=rows.sample_weight, n_threads=rows.n_threads)
        self.problem = Selection(reads, hard=full.hard, learn=full.learn, n_features=full.n_features)

    @staticmethod
    def patience(reads: Reads, n_starts: int) -> int | None:
        """Rounds of EM on the rows that cost as much as their inner products; None where these cannot help.

        Reducing once that much has been spent is never much worse than the better of the two from the outset.
        The inner products take P^2 N multiplications; they run about 13 times faster than those of a single
        pass, which waits for memory, and 4 times faster than those of several starts. One start may take
        very few rounds; of several the slowest takes so many that cheap inner products come first.
        """
        p, n = reads.shape
        if not isinstance(reads, Rows) or sparse.issparse(reads.X) or 4 * p > n:
            return None
        if n_starts == 1:
            return 1 + p // 13
        rounds = p // (4 * n_starts)
        return 0 if rounds <= _ROUNDS_OF_SEVERAL else 1 + rounds

    def enter(self, states: Sequence[State]) -> list[tuple[Step, State]]:
        """Take one EM step from any centres, in one read; where they lead is given in the span."""
        steps, weights = self._weigh(self.full, states)
        sums = (self.full.counts[:, None] * weights).T @ self._factor
        return [(step, _with_center(step, row)) for step, row in zip(steps, sums, strict=True)]

    def leave(self, steps: Sequence[Step]) -> list[State]:
        """Return where the steps lead, with centres among the data's own coordinates; one read."""
        _, weights = self._weigh(self.problem, [step.state for step in steps])
        sums = self.full.reads.weighted_sums(weights)
        return [_with_center(step, row) for step, row in zip(steps, sums, strict=True)]

    @staticmethod
    def _weigh(problem: Selection, states: Sequence[State]) -> tuple[list[Step], Array]:
        weights = np.ones((problem.reads.shape[0], len(states)))
        return problem.read(states, weights), weights


def _with_center(step: Step, weighted_sum: Array) -> State:
    total = step.total_weight + step.state.noise_variance / step.state.center_variance
    return replace(step.next, center=weighted_sum / total)


def _gram(rows: Rows) -> Array:
    """Inner products of the folded rows, summed in float64 over blocks of columns; one read."""
    p, n = rows.shape
    total = np.zeros((p, p))
    width = max(1, _BLOCK_BYTES // (8 * p))
    for first in range(0, n, width):
        block = rows.X[:, first : first + width].astype(np.float64, copy=False)
        if rows.center is not None:
            block = block - rows.center[first : first + width]
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
