"""The effective ensemble of real data: the model's few parameters, with intervals.

The point estimate maximises the evidence that message passing computes (the Bethe free energy). Its
curvature over (φ, ψ, ln γ), contamination = sin²φ, label noise = sin²ψ, gives the covariance. In the angles
φ and ψ a share has nearly constant variance, up to the borders 0 and 1. The Gaussian prior of the centre
adds its own fluctuation of ln |c|², which is 2/N and no uncertainty about the |c|² of these data: it is
taken off (as if the prior were the sphere).

Inputs that are no Gaussian cloud (groups of their own, a few far examples) give evidence against pure noise
whatever their labels are. A signal is therefore claimed only where the labels, too, are better foretold by
what was found than by a coin.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from outlearn.inference.amp import AmpResult
from outlearn.inference.rows import Rows
from outlearn.model import Ensemble
from outlearn.practice.estimate import LEVEL, Estimate
from outlearn.practice.folding import Folded, pass_messages, with_wrong_labels

__all__ = ["EffectiveEnsemble", "estimate_ensemble"]

Array = NDArray[np.float64]

_Z = float(stats.norm.ppf(0.5 + 0.5 * LEVEL))
_STEPS = np.array([0.02, 0.02, 0.05])
# Precision of what is known before the data: an angle anywhere in [0, π/2], γ within a factor 20.
_PRIOR = np.array([12.0 / (0.5 * math.pi) ** 2, 12.0 / (0.5 * math.pi) ** 2, (_Z / math.log(20.0)) ** 2])
_DETECTED = 3.0  # nats of evidence that a signal needs against pure noise, and against labels by a coin
_SAME = 0.5  # cosine from which on two centres mean the same structure
_STRONGEST = 1e6  # signal strength beyond which nothing changes any more
_TINY = 1e-4
_LITTLE = 0.5  # a least share of garbage below which it is asked whether there is any
_WEAK = 0.08  # standard deviation of φ from which on the evidence is followed, not its curvature
_GRID = np.linspace(0.04, 0.5 * math.pi - 0.04, 24)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EffectiveEnsemble:
    """The model that the data look like, and how well it is known.

    Attributes
    ----------
    contamination, label_noise : Estimate
        Share of garbage among all examples, share of wrong labels among the rest.
    noise_variance : Estimate
        Mean variance of a feature within a class, in the units of the data.
    gamma : Estimate
        Signal strength |c|²/s²: squared half distance of the classes in units of the noise.
    eta : Estimate
        ln(contamination / (1 - contamination)).
    alpha : float
        Examples per feature.
    balance : float
        4 π₊π₋ of the shares of the two labels: 1 for classes of equal size. The midpoint of unequal ones is
        less well known, which costs examples.
    evidence : float
        Nats by which the data prefer a signal to pure noise.
    label_evidence : float
        Nats by which they prefer it to the same structure with labels drawn by a coin.
    covariance : array (3, 3)
        Of (φ, ψ, ln γ); contamination = sin²φ, label noise = sin²ψ.
    detected : bool
        Whether labels and inputs have anything to do with each other.
    """

    contamination: Estimate
    label_noise: Estimate
    noise_variance: Estimate
    gamma: Estimate
    eta: Estimate
    alpha: float
    balance: float
    n_samples: int
    n_features: int
    evidence: float
    label_evidence: float
    covariance: Array
    detected: bool

    @property
    def ensemble(self) -> Ensemble:
        """The paper's ensemble at the estimates (label noise left out)."""
        return Ensemble(eta=self.eta.value, gamma=self.gamma.value)

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers."""
        names = ("contamination", "label_noise", "noise_variance", "gamma", "eta")
        out: dict[str, Any] = {name: getattr(self, name).to_dict() for name in names}
        for name in ("alpha", "n_samples", "n_features", "evidence", "label_evidence", "detected"):
            out[name] = getattr(self, name)
        return out

    def sigma_points(self) -> list[tuple[float, float, float]]:
        """(contamination, label noise, gamma) at the estimate, then one deviation to each side.

        The pairs lie along the columns of the covariance's Cholesky factor: half the squared differences of a
        function over the pairs add up to its variance.
        """
        center = np.array([_angle(self.contamination.value), _angle(self.label_noise.value)])
        base = np.append(center, math.log(self.gamma.value))
        points = [base]
        for column in _root(self.covariance).T:
            if column.any():
                points += [base + column, base - column]
        return [_natural(point) for point in points]

    def __repr__(self) -> str:
        return (
            f"EffectiveEnsemble(contamination={self.contamination}, label_noise={self.label_noise}, "
            f"gamma={self.gamma}, alpha={self.alpha:.4g}, detected={self.detected})"
        )


def estimate_ensemble(folded: Folded) -> EffectiveEnsemble:
    """Turn the posterior of the folded data into the parameters of an ensemble with 90 % intervals."""
    rows, found = folded.rows, folded.posterior
    p, n = rows.shape
    # distances in a covariance that was estimated from these very data are too long by 1/(1 - N/P)
    gamma = folded.whitening_cost * n * found.center_variance / found.noise_variance
    balance = 1.0 - float(folded.signs.mean()) ** 2
    # the error of the midpoint, (π₊ - π₋) times it, passes for a part of the centre
    gamma = min(max(gamma - (1.0 / balance - 1.0) * n / p, 0.1 * gamma), _STRONGEST)
    evidence = _evidence(rows, folded.signs, found)
    label_evidence = _evidence_of_labels(rows, found) if evidence > _DETECTED else evidence
    covariance = _curvature(rows, found)
    angles = _angle(found.contamination), _angle(found.label_noise)
    contamination = _share(found.contamination, angles[0], math.sqrt(covariance[0, 0]))
    if covariance[0, 0] > _WEAK**2 or covariance[2, 2] > (4.0 * _WEAK) ** 2:
        contamination, covariance = _profile(rows, found, covariance)
    if 0.0 < contamination.low < _LITTLE and _may_be_clean(rows, found):
        contamination = replace(contamination, low=0.0)
    # the curvature was taken at a given noise variance, whose own uncertainty γ = |c|²/s² shares
    covariance[2, 2] += 2.0 / (p * n)
    sd = np.sqrt(np.diag(covariance))
    relative = _Z * math.sqrt(2.0 / (p * folded.noise_features))
    return EffectiveEnsemble(
        contamination=contamination,
        label_noise=(
            _share(found.label_noise, angles[1], sd[1], 0.5)
            if found.label_noise > 0.0
            else Estimate(0.0, 0.0, _most_wrong_labels(rows, found))
        ),
        noise_variance=Estimate(
            folded.noise_variance,
            folded.noise_variance * math.exp(-relative),
            folded.noise_variance * math.exp(relative),
        ),
        gamma=Estimate(gamma, gamma * math.exp(-_Z * sd[2]), gamma * math.exp(_Z * sd[2])),
        eta=contamination.map(_eta),
        alpha=p / n,
        balance=balance,
        n_samples=p,
        n_features=n,
        evidence=evidence,
        label_evidence=label_evidence,
        covariance=covariance,
        detected=bool(min(evidence, label_evidence) > _DETECTED and found.converged),
    )


def _curvature(rows: Rows, found: AmpResult) -> Array:
    """Inverse Hessian of the evidence, by differences of its gradient along each parameter."""
    base = np.array([_angle(found.contamination), _angle(found.label_noise), math.log(found.center_variance)])
    steps = _STEPS.copy()
    free = [0, 1, 2] if found.label_noise > 0.0 else [0, 2]
    # Where no wrong label was found, the number of informative examples that have none bounds their share.
    informative = float(found.inlier_proba.sum())
    hessian = np.diag([0.0, 4.0 * max(informative, 1.0) if 1 not in free else 0.0, 0.0])
    for k in free:
        gradients = []
        for side in (1.0, -1.0):
            at = base.copy()
            at[k] += side * steps[k]
            gradients.append(_gradient(rows, found, at))
        hessian[k] += (gradients[0] - gradients[1]) / (2.0 * steps[k])
    hessian = 0.5 * (hessian + hessian.T)
    values, vectors = np.linalg.eigh(hessian)
    covariance = (vectors / np.maximum(values, 1e-9)) @ vectors.T
    covariance[2, 2] -= 2.0 / rows.shape[1]
    values, vectors = np.linalg.eigh(covariance)
    values = np.maximum(values, 0.02 * np.abs(np.diag(covariance)).min())
    return np.linalg.inv((vectors / values) @ vectors.T + np.diag(_PRIOR))


def _most_wrong_labels(rows: Rows, found: AmpResult) -> float:
    """The largest share of wrong labels that the data allow although their evidence does not ask for any."""
    if not found.center.any():
        return 0.5
    run = with_wrong_labels(rows, found)
    sd = math.sqrt(_curvature(rows, run)[1, 1])
    return math.sin(min(_angle(run.label_noise) + _Z * sd, 0.25 * math.pi)) ** 2


def _may_be_clean(rows: Rows, found: AmpResult) -> bool:
    """Whether the evidence leaves it open that there is no garbage at all, but at most wrong labels."""
    if not found.center.any():
        return True
    clean = pass_messages(
        rows, init=found.center, contamination=_TINY**2, noise_variance=found.noise_variance
    )
    return clean.energy < found.energy + 0.5 * _Z**2


def _profile(rows: Rows, found: AmpResult, local: Array) -> tuple[Estimate, Array]:
    """Weights exp(evidence) over a grid of φ, γ following: for data that say little."""
    best, log_tau2 = _angle(found.contamination), math.log(found.center_variance)
    energies, log_ratio = np.empty(_GRID.size), np.empty(_GRID.size)
    for k, phi in enumerate(_GRID):
        run = pass_messages(
            rows,
            init=found.center,
            contamination=math.sin(phi) ** 2,
            label_noise=found.label_noise or None,
            noise_variance=found.noise_variance,
        )
        energies[k] = run.energy
        log_ratio[k] = np.clip(math.log(run.center_variance) - log_tau2, -3.0, 3.0)
    weights = np.exp(energies.min() - energies)
    weights /= weights.sum()
    # a point of the grid stands for its cell: inside it the weight is spread evenly
    half = 0.5 * (_GRID[1] - _GRID[0])
    edges = np.append(_GRID - half, _GRID[-1] + half)
    mass = np.append(0.0, np.cumsum(weights))
    low, high = np.interp([0.5 - 0.5 * LEVEL, 0.5 + 0.5 * LEVEL], mass, edges)
    low, high = max(min(low, best), 0.0), min(max(high, best), 0.5 * math.pi)
    covariance = local.copy()
    away = _GRID - best
    covariance[0, 0] = float(weights @ away**2) + half**2 / 3.0
    covariance[0, 2] = covariance[2, 0] = float(weights @ (away * log_ratio))
    conditional = local[2, 2] - local[0, 2] ** 2 / local[0, 0]
    covariance[2, 2] = float(weights @ log_ratio**2) + max(conditional, 0.0)
    covariance[1, [0, 2]] = covariance[[0, 2], 1] = 0.0
    return Estimate(found.contamination, math.sin(low) ** 2, math.sin(high) ** 2), covariance


def _gradient(rows: Rows, found: AmpResult, at: Array) -> Array:
    """Gradient of the energy over (φ, ψ, ln τ²) at settled beliefs: only explicit terms are left."""
    contamination, label_noise, tau2 = np.sin(at[0]) ** 2, np.sin(at[1]) ** 2, math.exp(at[2])
    contamination = float(np.clip(contamination, _TINY**2, 1.0 - _TINY))
    run = pass_messages(
        rows,
        init=found.center,
        contamination=contamination,
        label_noise=float(np.clip(label_noise, _TINY**2, 0.5)) if found.label_noise > 0.0 else None,
        noise_variance=found.noise_variance,
        center_variance=tau2,
        tol=1e-7,
    )
    count = {v: float(run.posterior[:, k].sum()) for k, v in enumerate(run.values)}
    phi, psi = at[0], at[1]
    g_phi = -2.0 * (count[0.0] / math.tan(phi) - (count[1.0] + count.get(-1.0, 0.0)) * math.tan(phi))
    g_psi = 0.0
    if found.label_noise > 0.0:
        g_psi = -2.0 * (count[-1.0] / math.tan(psi) - count[1.0] * math.tan(psi))
    n = rows.shape[1]
    g_tau = 0.5 * (n - (float(run.center @ run.center) / tau2 + n * run.center_std[0] ** 2 / tau2))
    return np.array([g_phi, g_psi, g_tau])


def _evidence(rows: Rows, signs: Array, found: AmpResult) -> float:
    """Nats by which the data prefer the signal found to noise around their mean.

    Noise is centred at the mean of all examples, the signal half way between the labels. To compare the two,
    the signal's midpoint m is fitted as well, which gains P|r|²/(2s²), r being the mean of what is left of
    the examples, and integrated over: (m, c) have the volume (1 - <yu>²/(<V²> + s²/(Pτ²)))^(-N/2) in units of
    that of m without a signal and of c at a given m. With labels of unequal size the error of a midpoint that
    is taken for known would pass for a signal.
    """
    p, n = rows.shape
    mean = rows.weighted_sums(signs[:, None] / p)[0]
    variance = (float(rows.square_norms().mean()) - float(mean @ mean)) / n
    noise = p * (0.5 * n * (math.log(2.0 * math.pi * variance) + 1.0) + math.log(2.0))
    along = float(signs @ (found.posterior @ found.values)) / p
    second = float((found.posterior @ found.values**2).mean())
    second += found.noise_variance / (p * max(found.center_variance, 1e-300))
    left = mean - along * found.center
    gain = 0.5 * p * float(left @ left) / found.noise_variance
    return noise - found.energy + gain - 0.5 * n * math.log1p(-(along**2) / second)


def _evidence_of_labels(rows: Rows, found: AmpResult) -> float:
    """Evidence against the same structure with half of its labels wrong: of which labels say nothing."""
    settled = {"init": found.center, "label_noise": 0.5}
    same = pass_messages(
        rows,
        **settled,
        contamination=min(max(found.contamination, 1e-6), 1.0 - 1e-6),
        noise_variance=found.noise_variance,
        center_variance=found.center_variance,
    )
    adapted = pass_messages(rows, **settled)
    lengths = float(np.linalg.norm(adapted.center) * np.linalg.norm(found.center))
    # without labels to hold it, message passing may turn to another structure that explains more
    if abs(float(adapted.center @ found.center)) > _SAME * lengths > 0.0:
        return min(same.energy, adapted.energy) - found.energy
    return same.energy - found.energy


def _angle(share: float) -> float:
    return math.asin(math.sqrt(min(max(share, _TINY**2), 1.0)))


def _natural(point: Array) -> tuple[float, float, float]:
    phi = float(np.clip(point[0], _TINY, 0.5 * math.pi - _TINY))
    psi = float(np.clip(point[1], 0.0, 0.25 * math.pi))
    return math.sin(phi) ** 2, math.sin(psi) ** 2, math.exp(point[2])


def _share(value: float, angle: float, sd: float, most: float = 1.0) -> Estimate:
    low = math.sin(max(angle - _Z * sd, 0.0)) ** 2
    high = math.sin(min(angle + _Z * sd, 0.5 * math.pi)) ** 2
    return Estimate(value, low, max(min(high, most), value))


def _eta(contamination: float) -> float:
    if contamination <= 0.0:
        return -math.inf
    return math.log(contamination) - math.log1p(-contamination) if contamination < 1.0 else math.inf


def _root(covariance: Array) -> Array:
    values, vectors = np.linalg.eigh(covariance)
    return vectors * np.sqrt(np.maximum(values, 0.0))
