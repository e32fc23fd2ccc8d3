"""Deal examples out by what they say, so that their order and repetition do not matter."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from outlearn.inference.rows import column_range

__all__ = ["content_order", "folds"]

Array = NDArray[np.float64]

_HASHED = 1 << 16  # numbers hashed at once


def content_order(X: Any, labels: NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Groups of equal examples, and an order of the groups, that depend on content alone.

    Folds built on it do not change when rows are shuffled, or repeated instead of weighted, when columns or
    labels change places, or units; and copies of one example never sit on both sides of a split. Content is
    the sum of a hash of where in its column's range every number lies, in single precision.
    """
    content = _content(X)
    order = np.lexsort((labels, content))
    sorted_content, sorted_labels = content[order], labels[order]
    fresh = np.ones(len(order), dtype=bool)
    fresh[1:] = (sorted_content[1:] != sorted_content[:-1]) | (sorted_labels[1:] != sorted_labels[:-1])
    groups = np.empty(len(order), dtype=np.intp)
    groups[order] = np.cumsum(fresh) - 1
    return groups, order


def _content(X: Any) -> NDArray[np.uint64]:
    p, n = X.shape
    out = np.zeros(p, dtype=np.uint64)
    if sparse.issparse(X):
        X = X.tocsr()
        low, high = (np.asarray(end, dtype=np.float64) for end in column_range(X))
        width = np.where(high > low, high - low, 1.0)
        empty = _hashed((0.0 - low) / width)
        step = max(1, _HASHED * p // max(X.nnz, 1))
        for k in range(0, p, step):
            held = slice(X.indptr[k], X.indptr[min(p, k + step)])
            columns = X.indices[held]
            change = _hashed((X.data[held] - low[columns]) / width[columns]) - empty[columns]
            rows = np.repeat(np.arange(k, min(p, k + step)), np.diff(X.indptr[k : k + step + 1]))
            np.add.at(out, rows, change)
        return out
    # in double precision, so that single-precision data are dealt out as their wide copy would be
    low, high = (np.asarray(end, dtype=np.float64) for end in (X.min(axis=0), X.max(axis=0)))
    width = np.where(high > low, high - low, 1.0)
    step = max(1, _HASHED // n)
    for k in range(0, p, step):
        out[k : k + step] = _hashed((X[k : k + step] - low) / width).sum(axis=1)
    return out


def _hashed(positions: Array) -> NDArray[np.uint64]:
    return _mixed(positions.astype(np.float32).view(np.uint32).astype(np.uint64))


def _mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Scramble 64 bits (the finaliser of SplitMix64)."""
    z = numbers + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(z ^ (z >> np.uint64(31)))


def folds(X: Any, labels: NDArray[np.intp], n_folds: int) -> NDArray[np.intp]:
    """Fold of every example: dealt out class by class in the order of their content."""
    groups, _ = content_order(X, labels)
    out = np.zeros(len(labels), dtype=np.intp)
    offset = 0
    classes = [np.flatnonzero(labels == label) for label in np.unique(labels)]
    for mine in sorted(classes, key=lambda mine: int(groups[mine].min())):
        _, ranks = np.unique(groups[mine], return_inverse=True)
        out[mine] = (ranks + offset) % n_folds
        offset += int(ranks.max()) + 1
    return out
