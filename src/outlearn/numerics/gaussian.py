"""Averages over a standard normal variable, split at kinks and jumps, with an error that is measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["LIMIT", "GaussianAverage", "gaussian_average", "gaussian_nodes", "legendre_rule"]

LIMIT = 12.0
"""Averages are cut at |x| = LIMIT; the mass beyond is below 1e-32."""

_WIDEST = 3.0


class GaussianAverage(NamedTuple):
    """A value (one or an array of averages) and the difference that halving the panels made."""

    value: NDArray[np.float64]
    error: NDArray[np.float64]
    nodes: int


@cache
def legendre_rule(order: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Gauss-Legendre nodes and weights on [-1, 1], read-only and kept."""
    nodes, weights = np.polynomial.legendre.leggauss(order)
    nodes.setflags(write=False)
    weights.setflags(write=False)
    return nodes, weights


def gaussian_nodes(
    breaks: ArrayLike = (), *, order: int = 16, widest: float = _WIDEST, limit: float = LIMIT
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Nodes x and weights (with the Gaussian density in them) that never straddle a break.

    >>> x, w = gaussian_nodes([0.3])
    >>> round(float(w @ (x > 0.3)), 12)
    0.382088577811
    """
    inner = np.asarray(breaks, dtype=np.float64).ravel()
    inner = inner[np.isfinite(inner) & (np.abs(inner) < limit)]
    edges = np.unique(np.concatenate([[-limit], inner, [limit]]))
    pieces = np.maximum(1, np.ceil(np.diff(edges) / widest - 1e-9)).astype(np.int64)
    starts = np.repeat(edges[:-1], pieces)
    widths = np.repeat(np.diff(edges) / pieces, pieces)
    offset = np.arange(pieces.sum()) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    left = starts + offset * widths
    t, w = legendre_rule(order)
    half = 0.5 * widths[:, None]
    x = (left[:, None] + half * (1.0 + t)).ravel()
    weight = (half * w).ravel() * np.exp(-0.5 * x * x) / np.sqrt(2.0 * np.pi)
    return x, weight


def gaussian_average(
    function: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    breaks: Sequence[float] | NDArray[np.float64] = (),
    *,
    order: int = 16,
    tolerance: float = 1e-13,
    max_refinements: int = 6,
    limit: float = LIMIT,
) -> GaussianAverage:
    """Average ``function(x)`` over x ~ N(0, 1); ``function`` maps (n,) nodes to (..., n) values.

    Panels end at ``breaks`` (kinks, jumps, edges of a steep region) and are halved until two resolutions
    agree within ``tolerance``, absolutely or relative to the average of the modulus. The error returned is
    the last difference, not an estimate from a formula; it stays above the tolerance when halving does not
    help.

    >>> average = gaussian_average(lambda x: np.stack([x**2, np.abs(x)]), breaks=[0.0])
    >>> average.value.round(6), bool((average.error < 1e-14).all())
    (array([1.      , 0.797885]), True)
    """
    widest = _WIDEST
    x, w = gaussian_nodes(breaks, order=order, widest=widest, limit=limit)
    coarse = np.asarray(function(x)) @ w
    used = x.size
    for _ in range(max(1, max_refinements)):
        widest *= 0.5
        # every panel is halved: breaks join the cut points, so narrow panels are halved too
        x, w = _halved(breaks, order, widest, limit)
        used += x.size
        values = np.asarray(function(x))
        fine = values @ w
        error = np.abs(fine - coarse)
        if np.all(error <= tolerance * np.maximum(1.0, np.abs(values) @ w)):
            break
        coarse = fine
    return GaussianAverage(fine, error, used)


def _halved(
    breaks: ArrayLike, order: int, widest: float, limit: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    edges = np.unique(np.concatenate([[-limit, limit], np.asarray(breaks, dtype=np.float64).ravel()]))
    edges = edges[np.isfinite(edges) & (np.abs(edges) <= limit)]
    halvings = round(np.log2(_WIDEST / widest))
    for _ in range(halvings):
        edges = np.sort(np.concatenate([edges, 0.5 * (edges[1:] + edges[:-1])]))
    return gaussian_nodes(edges, order=order, widest=widest, limit=limit)
