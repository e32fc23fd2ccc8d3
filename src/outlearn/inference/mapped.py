"""Examples in other coordinates, seen without being made."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from outlearn.inference.rows import Respond, Rows

__all__ = ["Mapped"]

Array = NDArray[np.float64]
Map = Callable[[Array], Array]


class Mapped:
    """Rows z A of a matrix A, read as the rows z: directions go through Aᵀ, sums of rows through A.

    Parameters
    ----------
    reads : Rows or Mapped
        The rows z.
    forward, backward : function
        v -> v A and v -> v Aᵀ for several v at once.
    square_norms : function
        () -> (P,): |z A|² of every row; asked once, if at all.

    Examples
    --------
    >>> double = Mapped(Rows.of([[1.0, 2.0]]), lambda v: 2 * v, lambda v: 2 * v, lambda: np.array([20.0]))
    >>> double.fields(np.array([[1.0, 0.0]])).tolist(), double.weighted_sums(np.ones((1, 1))).tolist()
    ([[2.0]], [[2.0, 4.0]])
    """

    def __init__(
        self, reads: Rows | Mapped, forward: Map, backward: Map, square_norms: Callable[[], Array]
    ) -> None:
        self._reads = reads
        self._forward, self._backward = forward, backward
        self._measure = square_norms
        self._norms: Array | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """(P, N)."""
        return self._reads.shape

    @property
    def dtype(self) -> np.dtype[np.generic]:
        """Floating-point type of the rows z."""
        return np.dtype(getattr(self._reads, "dtype", np.float64))

    @property
    def n_reads(self) -> int:
        """How often all of the data have been read."""
        return self._reads.n_reads

    @property
    def sample_weight(self) -> Array | None:
        """Multiplicity of every example, or None."""
        return self._reads.sample_weight

    def fields(self, D: ArrayLike) -> Array:
        """Project every row on every direction: (G, N) -> (P, G)."""
        return self._reads.fields(self._backward(np.asarray(D, dtype=np.float64)))

    def weighted_sums(self, W: Array) -> Array:
        """Sum the rows under every column of weights: (P, G) -> (G, N)."""
        return self._forward(self._reads.weighted_sums(W))

    def sweep(self, D: ArrayLike, respond: Respond) -> Array:
        """In ONE read: fields of a block of rows, weights from ``respond``, their weighted sum."""
        return self._forward(self._reads.sweep(self._backward(np.asarray(D, dtype=np.float64)), respond))

    def square_norms(self) -> Array:
        """Squared norm of every row."""
        if self._norms is None:
            self._norms = self._measure()
        return self._norms

    def select_by_label(
        self, d: Array, shift: float, offset: float, signs: Array, counts: Array, *, hard: bool
    ) -> tuple[Array, Array, Array, float]:
        """As :meth:`Rows.select_by_label`."""
        sums, totals, weights, loss = self._reads.select_by_label(
            self._backward(d[None])[0], shift, offset, signs, counts, hard=hard
        )
        return self._forward(sums), totals, weights, loss
