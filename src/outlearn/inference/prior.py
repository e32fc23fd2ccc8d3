"""What is known before the data: a few values for the hidden V, a Gaussian or a sphere for the centre."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import xlogy

from outlearn.exceptions import DataError, ParameterError
from outlearn.inference.rows import Reads
from outlearn.model.checks import number

__all__ = [
    "LEARNABLE",
    "CenterPrior",
    "Moments",
    "SelectionPrior",
    "learnable",
    "refuse_silence",
    "selection_prior",
]

Array = NDArray[np.float64]

LEARNABLE = ("contamination", "label_noise", "noise_variance", "center_variance")
_NEWTON_STEPS = 100
_NEWTON_TOL = 1e-11


class Moments(NamedTuple):
    """What a tilted prior of V says of a batch of examples."""

    mean: Array
    second: Array
    weights: Array  # (n, K): posterior probability of every value
    field: Array  # B, the linear field that the moments were taken at


@dataclass(frozen=True, slots=True)
class SelectionPrior:
    """A finite set of values that V may take, and how often it takes them (Eq. distv).

    >>> SelectionPrior.of(contamination=0.8)
    SelectionPrior(values=(0.0, 1.0), weights=(0.8, 0.2))
    >>> SelectionPrior.of(contamination=0.5, label_noise=0.1).values
    (-1.0, 0.0, 1.0)
    """

    values: tuple[float, ...]
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        values, weights = _numbers("values", self.values), _numbers("weights", self.weights)
        if len(values) != len(weights) or not values or len(set(values)) != len(values):
            raise ParameterError("values", self.values, "distinct numbers, one for every weight")
        if not any(v != 0.0 for v in values):
            raise ParameterError("values", self.values, "at least one value other than 0")
        if min(weights) < 0.0 or not math.isclose(sum(weights), 1.0, rel_tol=1e-9):
            raise ParameterError("weights", self.weights, "numbers >= 0 with sum 1")
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "weights", weights)

    @classmethod
    def of(cls, contamination: float, label_noise: float | None = None) -> SelectionPrior:
        """V = 1 informative, 0 outlier; with ``label_noise`` also -1: informative with the label flipped."""
        informative = 1.0 - contamination
        if label_noise is None:
            return cls((0.0, 1.0), (contamination, informative))
        return cls(
            (-1.0, 0.0, 1.0),
            (informative * label_noise, contamination, informative * (1.0 - label_noise)),
        )

    @property
    def mean(self) -> float:
        """Prior mean of V."""
        return float(np.dot(self.values, self.weights))

    @property
    def second_moment(self) -> float:
        """Prior mean of V²."""
        return float(np.dot(np.square(self.values), self.weights))

    @property
    def contamination(self) -> float:
        """Prior probability of V = 0."""
        return float(sum(w for v, w in zip(self.values, self.weights, strict=True) if v == 0.0))

    @property
    def label_noise(self) -> float:
        """Share of V < 0 among the V that are not 0."""
        active = 1.0 - self.contamination
        flipped = sum(w for v, w in zip(self.values, self.weights, strict=True) if v < 0.0)
        return float(flipped / active) if active > 0.0 else 0.0

    def moments(self, A: float, B: Array) -> Moments:
        """Mean, second moment and weights of V under p(V) exp(B V - A V²/2).

        >>> float(SelectionPrior.of(0.5).moments(2.0, np.array([1.0])).mean[0])
        0.5
        """
        values = np.asarray(self.values)
        with np.errstate(divide="ignore"):
            constant = np.log(self.weights) - 0.5 * A * values**2
        weights = np.multiply.outer(values, B)  # one row per value: sums over few values are then fast
        weights += constant[:, None]
        weights -= weights.max(axis=0)
        np.exp(weights, out=weights)
        weights /= weights.sum(axis=0)
        return Moments(values @ weights, values**2 @ weights, weights.T, B)

    def moments_with_reaction(self, A: float, B: Array, reaction: float) -> Moments:
        """Moments at the field that solves field = B - reaction * mean(field); there is exactly one."""
        values = np.asarray(self.values)
        low, high = B - reaction * values.max(), B - reaction * values.min()
        field = 0.5 * (low + high)
        moments = self.moments(A, field)
        for _ in range(_NEWTON_STEPS):
            gap = field + reaction * moments.mean - B
            if np.abs(gap).max(initial=0.0) <= _NEWTON_TOL * (1.0 + np.abs(B).max(initial=0.0)):
                break
            high, low = np.where(gap > 0.0, field, high), np.where(gap > 0.0, low, field)
            field = field - gap / (1.0 + reaction * (moments.second - moments.mean**2))
            field = np.where((field < low) | (field > high), 0.5 * (low + high), field)
            moments = self.moments(A, field)
        return moments

    def relearned(self, counts: Array) -> SelectionPrior:
        """Weights in proportion to expected counts, kept a little off 0 where they were not 0."""
        counts = np.where(np.asarray(self.weights) > 0.0, np.maximum(counts, 0.5), 0.0)
        return SelectionPrior(self.values, tuple((counts / counts.sum()).tolist()))

    def cross_entropy(self, counts: Array) -> float:
        """Expected -ln p(V) summed over examples, from the expected count of every value."""
        return float(-xlogy(counts, np.asarray(self.weights)).sum())


@dataclass(frozen=True, slots=True)
class CenterPrior:
    """Prior of the centre in N dimensions: N(0, variance) per coordinate, or the sphere |c|² = N variance.

    Messages about the centre have the form exp(B·c - A |c|²/2); the posterior has one variance for
    all coordinates. The sphere's formulas are its saddle point, exact as N grows.
    """

    n_features: int
    variance: float
    kind: Literal["gaussian", "sphere"] = "gaussian"

    def __post_init__(self) -> None:
        if self.kind not in ("gaussian", "sphere"):
            raise ParameterError("center_prior", self.kind, "'gaussian' or 'sphere'")
        if not (0.0 < self.variance < math.inf):
            raise ParameterError("center_variance", self.variance, "a finite number > 0")

    def posterior(self, A: float, B: Array) -> tuple[Array, float]:
        """Mean and variance of a coordinate under the prior times exp(B·c - A |c|²/2)."""
        if self.kind == "gaussian":
            precision = 1.0 / self.variance + A
        else:
            precision = _sphere_precision(self.variance, float(B @ B) / self.n_features)
        return B / precision, 1.0 / precision

    def posterior_with_reaction(self, A: float, B: Array, reaction: float) -> tuple[Array, float]:
        """Mean and variance at the field that solves field = B - reaction * mean(field)."""
        if self.kind == "gaussian":
            precision = 1.0 / self.variance + A
            return B / (precision + reaction), 1.0 / precision
        length = float(np.linalg.norm(B))
        n, tau2 = self.n_features, self.variance
        if length == 0.0:
            return np.zeros_like(B), tau2
        longest = math.sqrt(n * tau2)
        x = brentq(
            lambda share: (
                share * longest * (1.0 / (tau2 * (1.0 - share**2)) + reaction) - length
            ) * (1.0 - share**2),
            0.0,
            1.0,
            xtol=1e-15,
            rtol=1e-14,
        )  # fmt: skip
        return B * (x * longest / length), max(tau2 * (1.0 - x * x), 1e-15 * tau2)

    def variance_at(self, mean: Array, variance: float) -> float:
        """The variance that goes with a mean: the one given, or what the sphere leaves."""
        if self.kind == "gaussian":
            return variance
        return max(self.variance - float(mean @ mean) / self.n_features, 1e-15 * self.variance)

    def divergence(self, square: float, variance: float) -> float:
        """Kullback-Leibler divergence from the prior of a posterior with |mean|² = square."""
        n, tau2 = self.n_features, self.variance
        return 0.5 * ((square + n * variance) / tau2 - n - n * math.log(variance / tau2))

    def relearned(self, square: float, variance: float) -> CenterPrior:
        """The Gaussian variance that makes the posterior's second moment most likely."""
        learned = square / self.n_features + variance
        return CenterPrior(self.n_features, max(learned, 1e-300), self.kind)


def _sphere_precision(tau2: float, field: float) -> float:
    """L that solves tau2 L² = L + field: mean² + variance = tau2 when mean = B/L, variance = 1/L."""
    return (1.0 + math.sqrt(1.0 + 4.0 * tau2 * field)) / (2.0 * tau2)


def _numbers(name: str, given: Sequence[Any]) -> tuple[float, ...]:
    try:
        numbers = tuple(float(v) for v in given)
    except (TypeError, ValueError):
        raise ParameterError(name, given, "finite numbers") from None
    if not all(math.isfinite(v) for v in numbers):
        raise ParameterError(name, given, "finite numbers")
    return numbers


def selection_prior(selection: SelectionPrior | None, contamination: Any, label_noise: Any) -> SelectionPrior:
    """The prior on V that an algorithm was asked for, checked."""
    if selection is not None:
        if not isinstance(selection, SelectionPrior):
            raise ParameterError("selection", selection, "a SelectionPrior")
        return selection
    outliers = number("contamination", contamination, "0 <= contamination < 1", lambda c: 0.0 <= c < 1.0)
    if label_noise is None:
        return SelectionPrior.of(outliers)
    wrong = number("label_noise", label_noise, "0 <= label_noise <= 0.5", lambda c: 0.0 <= c <= 0.5)
    return SelectionPrior.of(outliers, wrong)


def learnable(learn: Iterable[str], prior: SelectionPrior) -> frozenset[str]:
    """Names of the parameters to learn, checked."""
    try:
        names = frozenset((learn,) if isinstance(learn, str) else learn)
    except TypeError:
        raise ParameterError("learn", learn, f"any of {', '.join(LEARNABLE)}") from None
    for name in sorted(names, key=str):
        if name not in LEARNABLE:
            raise ParameterError("learn", name, f"any of {', '.join(LEARNABLE)}")
    if "label_noise" in names and not any(v < 0.0 for v in prior.values):
        raise ParameterError("learn", "label_noise", "a label_noise to begin from, above 0")
    return names


def refuse_silence(rows: Reads, learn: frozenset[str]) -> None:
    """Noise cannot be learned from rows that are all zero."""
    if "noise_variance" in learn and not rows.square_norms().any():
        raise DataError("every row of X is zero: the noise variance cannot be learned")
