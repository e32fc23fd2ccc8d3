"""Four ways to spoil a training set; the test set stays clean."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np
from sklearn.covariance import ledoit_wolf_shrinkage
from sklearn.model_selection import train_test_split

from benchmarks.real.sets import RealSet

KINDS = {
    "none": "nothing is changed",
    "blob": "inputs drawn from one Gaussian with the pooled mean and the pooled within-class covariance "
    "(shrunk after Ledoit and Wolf), labels drawn at random",
    "flips": "true inputs, labels drawn at random (half come out right; garbage are those that changed)",
    "foreign": "inputs of classes that are neither of the two, labels drawn at random",
}
MOST_TRAINING, MOST_TEST = 1000, 2000
FEWEST_PER_CLASS = 3  # labels are drawn again below that: nobody can cross-validate with fewer


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Task:
    """A spoiled training set, the truth about it, and a clean test set."""

    X: np.ndarray
    y: np.ndarray
    garbage: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


def possible(data: RealSet, kind: str, rate: float) -> bool:
    """Whether the set has what this kind of contamination needs at this rate (and "none" has one rate)."""
    if kind == "foreign":
        return rate > 0 and len(data.foreign) >= round(rate * _sizes(data)[0])
    return (rate == 0) == (kind == "none")


def spoil(data: RealSet, kind: str, rate: float, seed: int) -> Task:
    """Split, and replace the share ``rate`` of the training set by garbage of the given kind.

    The split depends on the set and the seed only, so that every kind and rate spoils the same examples'
    neighbours; all methods get the same task.
    """
    split = np.random.default_rng([zlib.crc32(data.name.encode()), seed])
    n_train, n_test = _sizes(data)
    X, X_test, y, y_test = train_test_split(
        data.X,
        data.y,
        train_size=n_train,
        test_size=n_test,
        stratify=data.y,
        random_state=int(split.integers(2**31)),
    )
    X, y = X.copy(), y.copy()
    rng = np.random.default_rng([zlib.crc32(f"{data.name} {kind} {rate:g}".encode()), seed])
    chosen = rng.permutation(n_train)[: round(rate * n_train)]
    garbage = np.zeros(n_train, dtype=bool)
    garbage[chosen] = True
    true = y.copy()
    while len(chosen):
        y[chosen] = rng.integers(0, 2, size=len(chosen))
        if np.bincount(y, minlength=2).min() >= FEWEST_PER_CLASS:
            break
    if kind == "blob":
        X[chosen] = _blob(X, true, len(chosen), rng)
    elif kind == "foreign":
        X[chosen] = data.foreign[rng.permutation(len(data.foreign))[: len(chosen)]]
    elif kind == "flips":
        garbage = y != true
    return Task(X=X, y=y, garbage=garbage, X_test=X_test, y_test=y_test)


def _blob(X: np.ndarray, y: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    within = np.concatenate([X[y == k] - X[y == k].mean(axis=0) for k in (0, 1)])
    spread = within.std(axis=0)
    spread[spread == 0] = 1.0
    Z = within / spread  # shrink correlations, not units
    shrinkage = ledoit_wolf_shrinkage(Z, assume_centered=True)
    n = len(Z)
    correlated = rng.standard_normal((count, n)) @ Z / np.sqrt(n)
    free = rng.standard_normal((count, Z.shape[1])) * np.sqrt((Z**2).mean())
    draw = np.sqrt(1.0 - shrinkage) * correlated + np.sqrt(shrinkage) * free
    return X.mean(axis=0) + draw * spread


def _sizes(data: RealSet) -> tuple[int, int]:
    n_train = min(MOST_TRAINING, round(len(data.y) * 2 / 3))
    return n_train, min(MOST_TEST, len(data.y) - n_train)
