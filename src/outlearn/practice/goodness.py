"""Do the data look like the model? Three questions, each with the size of the effect.

Shape: the cavity fields h = y·c of the examples (each left out of its own centre) against the fitted mixture
Σ π_v N(v |c|², s²|c|²): Q-Q data and the Kolmogorov-Smirnov distance D, with a p-value from samples of the
mixture to which weights and centre are fitted again. Tails: of the residuals off the centre, the excess
kurtosis of a coordinate and the spread of their squared lengths, 1 for a Gaussian. Correlations: the mean
square of the correlations left between features, beyond the 1/P that chance gives.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse, stats
from scipy.special import ndtr

from outlearn.practice.folding import Folded

__all__ = ["Goodness", "assess"]

Array = NDArray[np.float64]

_SAMPLES = 200
_QUANTILES = 99
_MOST_ROWS, _MOST_COLUMNS = 2000, 500  # enough to see tails and correlations of large data
# Sizes from which an effect matters to the predictions, whatever its significance.
_DISTANCE, _KURTOSIS, _LENGTHS, _CORRELATION, _WIDER = 0.03, 0.5, 1.5, 0.05, 1.15


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Goodness:
    """How far data and model agree.

    Attributes
    ----------
    field_distance, field_p_value : float
        Kolmogorov-Smirnov distance of the fields from the fitted mixture, and its bootstrap p-value.
    quantiles_expected, quantiles_seen : arrays
        Q-Q data of the fields, in units of their noise.
    kurtosis : float
        Excess kurtosis of the residuals' coordinates (0 for a Gaussian).
    length_spread : float
        Variance of the residuals' squared length over that of a Gaussian (1).
    correlation : float
        Root mean square correlation between features beyond chance.
    correlation_p_value : float
    garbage_spread : float
        Variance of the garbage over that of the informative examples (1 in the model; 1 also where the
        difference is within chance).
    complaints : tuple of str
        What does not fit, in words; empty if all is well.
    trust : str
        "good", "fair" or "poor": how far predictions can be trusted.
    """

    field_distance: float
    field_p_value: float
    quantiles_expected: Array
    quantiles_seen: Array
    kurtosis: float
    length_spread: float
    correlation: float
    correlation_p_value: float
    garbage_spread: float
    complaints: tuple[str, ...]
    trust: str

    @property
    def statement(self) -> str:
        """How far the predictions can be trusted, in one sentence."""
        if self.trust == "good":
            return "The data look like the model: estimates, intervals and predictions hold as they stand."
        if self.trust == "fair":
            return (
                "The data depart from the model in one respect: take the ranking of examples and "
                "learners as it is, "
                "the numbers as good to some tens of per cent, and the intervals as too narrow."
            )
        return (
            "The data do not look like the model: use the ranking of examples with care and trust no "
            "predicted number without a test on clean examples."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            name: value.tolist() if isinstance(value := getattr(self, name), np.ndarray) else value
            for name in self.__slots__
        } | {"statement": self.statement}

    def __repr__(self) -> str:
        return (
            f"Goodness(trust={self.trust}: field distance {self.field_distance:.3f} "
            f"(p={self.field_p_value:.2g}), "
            f"kurtosis {self.kurtosis:+.2f}, lengths {self.length_spread:.2f}, "
            f"correlation {self.correlation:.3f})"
        )


def assess(folded: Folded, rng: np.random.Generator | int | None = 0) -> Goodness:
    """Compare data and fitted model."""
    rng = np.random.default_rng(rng)
    p, n = folded.rows.shape
    found = folded.posterior
    length = float(np.linalg.norm(found.center))
    weights = _weights(folded)
    if length > 0.0:
        shift = length / math.sqrt(found.noise_variance)
        fields = found.cavity_fields / (length * math.sqrt(found.noise_variance))
        center, weights = _refit(fields, found.values, shift, weights)
        distance = _distance(fields, found.values, center, weights)
        null = [
            _null_distance(rng, p, found.values, center, weights)
            for _ in range(_SAMPLES if p < 20_000 else 40)
        ]
        p_value = (1.0 + float(np.sum(np.array(null) >= distance))) / (1.0 + len(null))
        at = (np.arange(_QUANTILES) + 1.0) / (_QUANTILES + 1.0)
        expected, seen = _quantiles(np.asarray(at), found.values, center, weights), np.quantile(fields, at)
    else:
        distance, p_value, expected, seen = 0.0, 1.0, np.zeros(0), np.zeros(0)
    residuals, chosen = _residuals(folded, rng)
    unit = found.center / length if length > 0.0 and n > 1 else np.zeros(n)
    kurtosis, spread = _tails(residuals, unit)
    correlation, correlation_p = _correlations(residuals, unit, folded.structure)
    garbage = _garbage_spread(residuals, found.inlier_proba[chosen])
    complaints = _complaints(
        distance, p_value, kurtosis, spread, correlation, correlation_p, garbage, residuals.shape
    )
    # small departures of several kinds, or one that is large, make the numbers worthless
    severe = (
        (distance > 3 * _DISTANCE and p_value < 0.05)
        or abs(kurtosis) > 6 * _KURTOSIS
        or spread > 1.0 + 20 * (_LENGTHS - 1.0)
        or correlation > 3 * _CORRELATION
    )
    trust = "good" if not complaints else "poor" if severe or len(complaints) > 2 else "fair"
    return Goodness(
        field_distance=distance,
        field_p_value=p_value,
        quantiles_expected=expected,
        quantiles_seen=seen,
        kurtosis=kurtosis,
        length_spread=spread,
        correlation=correlation,
        correlation_p_value=correlation_p,
        garbage_spread=garbage,
        complaints=complaints,
        trust=trust,
    )


def _weights(folded: Folded) -> Array:
    found = folded.posterior
    right = 1.0 - found.contamination
    share = {
        0.0: found.contamination,
        1.0: right * (1.0 - found.label_noise),
        -1.0: right * found.label_noise,
    }
    return np.array([share[float(v)] for v in found.values])


def _refit(
    fields: Array, values: Array, center: float, weights: Array, steps: int = 30
) -> tuple[float, Array]:
    """Fit weights and centre of the one-dimensional mixture, noise one: what the data could adapt to."""
    for _ in range(steps):
        logs = np.log(np.maximum(weights, 1e-12)) - 0.5 * (fields[:, None] - center * values) ** 2
        logs -= logs.max(axis=1, keepdims=True)
        r = np.exp(logs)
        r /= r.sum(axis=1, keepdims=True)
        weights = np.maximum(r.mean(axis=0), 1e-9)
        weights = weights / weights.sum()
        square = float((r @ values**2).sum())
        center = float((r @ values) @ fields) / max(square, 1e-9)
    return center, weights


def _distance(fields: Array, values: Array, center: float, weights: Array) -> float:
    at = _cdf(np.sort(fields), values, center, weights)
    steps = np.arange(fields.size + 1) / fields.size
    return float(max((steps[1:] - at).max(), (at - steps[:-1]).max()))


def _null_distance(rng: np.random.Generator, p: int, values: Array, center: float, weights: Array) -> float:
    sample = rng.choice(values, size=p, p=weights) * center + rng.standard_normal(p)
    return _distance(sample, values, *_refit(sample, values, center, weights, steps=10))


def _cdf(x: Array, values: Array, center: float, weights: Array) -> Array:
    return np.asarray(ndtr(x[:, None] - center * values) @ weights)


def _quantiles(at: Array, values: Array, center: float, weights: Array) -> Array:
    x = np.linspace(-6.0 - abs(center), 6.0 + abs(center), 4000)
    return np.interp(at, _cdf(x, values, center, weights), x)


def _residuals(folded: Folded, rng: np.random.Generator) -> tuple[Array, NDArray[np.intp]]:
    """Residuals off the centre, of as many rows and features as tell the shape."""
    rows, found = folded.rows, folded.posterior
    p, n = rows.shape
    chosen = np.sort(rng.choice(p, _MOST_ROWS, replace=False)) if p > _MOST_ROWS else np.arange(p)
    X = rows.X[chosen]
    X = X.toarray() if sparse.issparse(X) else np.asarray(X, dtype=np.float64)
    Z = X - (0.0 if rows.center is None else rows.center)
    u = found.posterior[chosen] @ found.values
    sign = folded.signs[chosen]
    R = Z - (sign * u)[:, None] * found.center
    length = float(np.linalg.norm(found.center))
    if length > 0.0 and n > 1:
        unit = found.center / length
        R -= np.outer(R @ unit, unit)
    return R, chosen


def _tails(R: Array, unit: Array) -> tuple[float, float]:
    if unit.size == 1:  # nothing is off the centre
        return 0.0, 1.0
    columns = R - R.mean(axis=0)
    square = np.maximum((columns**2).mean(axis=0), 1e-300)
    # few examples have short tails by themselves: -6/(P+1) on average
    kurtosis = float(np.mean((columns**4).mean(axis=0) / square**2)) - 3.0 + 6.0 / (len(R) + 1.0)
    scaled = (columns**2 / square).sum(axis=1)
    # white noise off the centre: its standardised coordinates are correlated by -w_i w_j
    w = unit**2 / np.maximum(1.0 - unit**2, 1e-12)
    expected = 2.0 * (unit.size + max(float(w.sum()) ** 2 - float(w @ w), 0.0))
    return kurtosis, float(scaled.var() / expected)


def _correlations(R: Array, unit: Array, structure: str) -> tuple[float, float]:
    """Root mean square correlation beyond chance, and the chance of one as large without any."""
    if structure == "tied" or R.shape[1] < 3:  # whitened by these very data: nothing could be left
        return 0.0, 1.0
    step = max(1, R.shape[1] // _MOST_COLUMNS)
    R, unit = R[:, ::step], unit[::step]
    p, n = R.shape
    columns = R - R.mean(axis=0)
    columns /= np.sqrt(np.maximum((columns**2).mean(axis=0), 1e-300))
    # the projection off the centre correlates white noise by itself: take that off
    left = np.sqrt(np.maximum(1.0 - unit**2, 1e-12))
    p -= 1  # the mean took one degree of freedom
    C = columns.T @ columns / (p + 1) + np.outer(unit / left, unit / left)
    pairs = 0.5 * n * (n - 1)
    total = 0.5 * (float((C**2).sum()) - float((np.diag(C) ** 2).sum()))
    expected, sd = pairs / p, math.sqrt(n * (n - 1.0)) / p
    z = (total - expected) / sd
    return math.sqrt(max(total - expected - 2.0 * sd, 0.0) / pairs), float(stats.norm.sf(z))


def _garbage_spread(R: Array, inlier: Array) -> float:
    square = (R**2).mean(axis=1)
    inside, outside = inlier.sum(), (1.0 - inlier).sum()
    if min(inside, outside) < 10.0:
        return 1.0
    ratio = float(((1.0 - inlier) @ square / outside) / max(inlier @ square / inside, 1e-300))
    chance = math.sqrt(2.0 / R.shape[1] * (1.0 / inside + 1.0 / outside))
    return ratio if abs(math.log(ratio)) > 3.0 * chance else 1.0


def _complaints(
    distance: float,
    p_value: float,
    kurtosis: float,
    spread: float,
    correlation: float,
    correlation_p: float,
    garbage: float,
    shape: tuple[int, ...],
) -> tuple[str, ...]:
    out = []
    # so much is chance: three standard deviations of the two statistics
    chance_tails = 3.0 * math.sqrt(24.0 / math.prod(shape))
    chance_lengths = 3.0 * math.sqrt(2.0 / shape[0])
    if p_value < 0.01 and distance > _DISTANCE:
        out.append(
            f"the fields along the centre are not the mixture that the model says "
            f"(distance {distance:.2f}, p = {p_value:.2g})"
        )
    if kurtosis > _KURTOSIS + chance_tails:
        out.append(
            f"features have heavy tails (excess kurtosis {kurtosis:.1f}): consider ranks or a log scale"
        )
    elif kurtosis < -_KURTOSIS - chance_tails:
        out.append(f"features have short tails, as counts or flags have (excess kurtosis {kurtosis:.1f})")
    if spread > _LENGTHS + chance_lengths:
        out.append(
            f"examples differ in scale (their squared lengths vary {spread:.1f} times as much as a "
            f"Gaussian's)"
        )
    if correlation > _CORRELATION and correlation_p < 0.01:
        out.append(
            f"features are correlated ({correlation:.2f} on average, beyond chance): they carry less "
            "information than their number says"
        )
    if not 1.0 / _WIDER < garbage < _WIDER:
        out.append(
            f"garbage is {'wider' if garbage > 1 else 'narrower'} than the classes "
            f"(variance ratio {garbage:.2f}); the classifiers can learn that, the theory assumes 1"
        )
    return tuple(out)
