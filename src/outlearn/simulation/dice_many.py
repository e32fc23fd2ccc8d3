"""Whole matrix-free runs of EM on problems so small that the calls of Dice would cost more than its work.

The law and the algebra are those of :mod:`outlearn.simulation.dice`; a step of EM is one compiled call. What
a minimum is does not ask for the squared norms of the examples, so |G|² is not kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from outlearn.inference.kernels import gate_fields
from outlearn.inference.selection import gate_offset, posterior_spread, prior_energy
from outlearn.model import Ensemble
from outlearn.simulation.dice import NOTHING_NEW, fast_stream

__all__ = ["MatrixFreeEM", "MatrixFreeFit"]

Array = NDArray[np.float64]
Start = Callable[[], Array]

_ROWS = 32


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MatrixFreeFit:
    """Where plain EM ended.

    ``energy`` is the training energy less everything that depends on the data only; ``square`` the sum of
    the squared inlier probabilities.
    """

    center: Array
    energy: float
    square: float
    n_iter: int
    residual: float
    total_weight: float


class MatrixFreeEM:
    """Plain soft or hard EM with known hyper-parameters, one run after the other in one workspace.

    Examples
    --------
    >>> em = MatrixFreeEM(Ensemble(0.0, 10.0), 50, 1000, hard=False, tol=1e-6, max_iter=1000)
    >>> B, rng = np.ones(50), np.random.default_rng(0)
    >>> fit = em.run(B, rng, B / np.sqrt(50))
    >>> round(float(fit.center @ B / np.sqrt(50)), 1)
    1.0
    """

    def __init__(
        self, ensemble: Ensemble, n_features: int, n_samples: int, *, hard: bool, tol: float, max_iter: int
    ) -> None:
        self.ensemble, self.hard, self.tol, self.max_iter = ensemble, hard, tol, max_iter
        self.shape = (n_samples, n_features)
        self._ones = np.ones(n_samples)
        self._seen = np.zeros(2, dtype=np.int64)  # vectors that each side has visited
        self._reserve(_ROWS)

    def _reserve(self, rows: int) -> None:
        """Make room for this many vectors on each side, and keep those that are there."""
        p, n = self.shape
        old = getattr(self, "_sides", ())
        self._sides = tuple(np.empty((rows, length)) for length in (n, p, p, n))
        for new, before in zip(self._sides, old, strict=False):
            new[: len(before)] = before

    def run(self, B: Array, rng: np.random.Generator | int, start: Array | None) -> MatrixFreeFit:
        """Draw what EM asks about and climb from ``start``, a centre c = J/√N; from Hebb's vector if None."""
        e, (p, n) = self.ensemble, self.shape
        s2, tau2 = 1.0 / e.gamma_tilde, 1.0 / n
        stream = fast_stream(rng)
        informative = (stream.random(p) < e.informative_fraction).astype(np.float64)
        shift, noise = B / math.sqrt(n), 1.0 / math.sqrt(e.gamma)
        seen = self._seen
        seen[:] = 0
        drawn = 0
        weights, after = np.ones(p), np.empty(n)

        def prepared() -> Sequence[Array]:
            """The workspace, with fresh normals where the next images go."""
            nonlocal drawn
            if max(seen) == drawn:
                if drawn == len(self._sides[0]):
                    self._reserve(2 * drawn)
                stream.standard_normal(out=self._sides[1][drawn])
                stream.standard_normal(out=self._sides[3][drawn])
                drawn += 1
            return self._sides

        if start is None:
            _weighted_sum(weights, *prepared(), seen, informative, shift, noise, after)
            center = after / (p + s2 / tau2)
        else:
            center = np.array(start, dtype=np.float64)

        def step(spread: float) -> Any:
            return _step(
                center, *prepared(), seen, informative, shift, noise, self._ones, weights,
                spread, s2, tau2, e.eta_tilde, self.hard, after,
            )  # fmt: skip

        spread = posterior_spread(p / (1.0 + math.exp(e.eta_tilde)), s2, tau2) if self.hard else 0.0
        n_iter, residual = 0, math.inf
        while residual > self.tol and n_iter < self.max_iter:
            *_, spread, residual, _ = step(spread)
            n_iter += 1
            center = after.copy()
        energy, total, _, _, posterior_energy = step(spread)
        return MatrixFreeFit(
            center=after.copy() if self.hard else center,
            energy=posterior_energy if self.hard else energy,
            square=float(weights @ weights),
            n_iter=n_iter,
            residual=residual,
            total_weight=total,
        )


@njit(cache=True, nogil=True, error_model="numpy")
def _answer(
    x: Any, here: Any, images: Any, count: Any, there: Any, there_images: Any, there_count: Any, out: Any
) -> Any:
    """Write the product of G (or its transpose) with x, given all earlier answers; return the new count.

    The row of ``images`` after those in use holds normals, and becomes the image of what is new in x.
    """
    if there_count == out.size:  # the other side has seen everything: G is known
        out[:] = np.dot(np.dot(there_images[:there_count], x), there[:there_count])
        return count
    rest = x.copy()
    out[:] = 0.0
    size = math.sqrt(np.dot(x, x))
    if count:
        known = np.dot(here[:count], x)
        rest -= np.dot(known, here[:count])
        if math.sqrt(np.dot(rest, rest)) < 0.7 * size:
            again = np.dot(here[:count], rest)
            rest -= np.dot(again, here[:count])
            known += again
        out += np.dot(known, images[:count])
    length = math.sqrt(np.dot(rest, rest))
    if length <= NOTHING_NEW * size:
        return count
    rest /= length
    here[count] = rest
    image = images[count]
    if there_count:
        surprise = np.dot(there_images[:there_count], rest) - np.dot(there[:there_count], image)
        image += np.dot(surprise, there[:there_count])
    out += length * image
    return count + 1


@njit(cache=True, nogil=True, error_model="numpy")
def _weighted_sum(
    weights: Any, U: Any, A: Any, L: Any, C: Any, seen: Any, informative: Any, shift: Any, noise: Any,
    out: Any,
) -> None:  # fmt: skip
    """Write the sum of the examples under these weights."""
    seen[1] = _answer(weights, L, C, seen[1], U, A, seen[0], out)
    out *= noise
    out += np.dot(weights, informative) * shift


@njit(cache=True, nogil=True, error_model="numpy")
def _step(
    c: Any, U: Any, A: Any, L: Any, C: Any, seen: Any, informative: Any, shift: Any, noise: Any, ones: Any,
    weights: Any, spread: Any, s2: Any, tau2: Any, eta: Any, hard: Any, after: Any,
) -> Any:  # fmt: skip
    """One step of EM: energy without constants, total weight, spread, residual, posterior energy."""
    p, n = informative.size, c.size
    h = np.empty(p)
    seen[0] = _answer(c, U, A, seen[0], L, C, seen[1], h)
    h *= noise
    h += np.dot(c, shift) * informative
    square = np.dot(c, c)
    offset = gate_offset(square, n, spread, s2, eta)
    total, loss, _ = gate_fields(h, ones, ones, 1.0 / s2, offset, hard, weights)
    _weighted_sum(weights, U, A, L, C, seen, informative, shift, noise, after)
    gain = np.dot(c, after)
    after /= total + s2 / tau2
    new_square = np.dot(after, after)
    move = after - c
    size = max(square, new_square)
    residual = math.sqrt(np.dot(move, move) / size) if size > 0.0 else 0.0
    prior = prior_energy(square, n, spread, tau2)
    new_spread = posterior_spread(total, s2, tau2) if hard else 0.0
    # F with the weights held, before and after the centre moves
    held = prior - (gain - 0.5 * total * (square + n * spread)) / s2
    moved = prior_energy(new_square, n, new_spread, tau2)
    moved -= (new_square * (total + s2 / tau2) - 0.5 * total * (new_square + n * new_spread)) / s2
    return prior - loss, total, new_spread, residual, prior - loss - held + moved
