"""The M step of the contaminated mixture, the priors that keep it finite, and where it begins."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from outlearn.inference.covariance import Covariance, cross, estimate, oracle_shrinkage
from outlearn.inference.mixture import Beliefs, Mixture, design_of, simplex
from outlearn.inference.mixture_data import MixtureData, Statistics

if TYPE_CHECKING:
    from outlearn.inference.stream import RunningMoments

__all__ = [
    "Shrinkage",
    "center_uncertainty",
    "covariance_energy",
    "maximise",
    "mixture_at",
    "moment_center_variance",
    "prior_energy",
    "shrinkage_for",
]

Array = NDArray[np.float64]

_LABEL_PRIOR = 2.0  # examples' worth of belief that the classes are as frequent as their labels
_STATE_PRIOR = 1.0  # examples' worth of belief in every kind of state: keeps fractions off 0 and 1
_SPHERE_PULL = 1e-2  # examples' worth of prior: no more than keeps an empty cluster finite
_DIAG_PULL = 2.0
_GARBAGE_PULL = 5.0
_FLOOR = 1e-9  # of the mean variance


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Shrinkage:
    """Hyperparameters of the covariances: held fixed while EM climbs, so that it has one objective."""

    pull: float
    target: Any


def maximise(
    data: MixtureData | RunningMoments,
    stats: Statistics,
    beliefs: Beliefs,
    shrinkage: Shrinkage,
    last: Mixture,
) -> Mixture:
    """M step: the parameters of highest expected complete log-posterior (covariances after centres).

    Midpoint, centres and garbage centre solve one small linear system, the same for all features unless
    garbage has a spread of its own about the shared midpoint.
    """
    k, corners = data.n_classes, simplex(data.n_classes)
    n_states = stats.counts.sum(axis=0)
    own_center = beliefs.garbage == "free"
    design, penalty = design_of(last, own_center)
    relative = np.ones((1, k + 1))  # precision of every state against the classes', by feature
    if beliefs.garbage == "spread":
        ratio = np.atleast_1d(last.covariance.values / last.garbage_covariance.values)
        relative = np.ones((len(ratio), k + 1))
        relative[:, k] = ratio
    weights = relative * n_states
    normal = np.einsum("zi,fz,zj->fij", design, weights, design) + np.diag(penalty + 1e-12 * data.count)
    if len(relative) == 1:
        B = np.linalg.solve(normal[0], design.T @ (relative[0][:, None] * stats.sums))
    else:
        right = np.einsum("zi,fz,zf->fi", design, relative, stats.sums)
        B = np.linalg.solve(normal, right[:, :, None])[:, :, 0].T
    midpoint, centers = B[0], B[1:k]
    garbage_center = B[k] if own_center else midpoint
    means = np.vstack([midpoint + corners @ centers, garbage_center])

    covariance, garbage_covariance = _covariances(data, stats, beliefs, shrinkage, means, n_states)
    if beliefs.garbage == "shared":
        garbage_covariance = covariance
    return Mixture(
        midpoint=midpoint,
        centers=centers,
        garbage_center=garbage_center,
        covariance=covariance,
        garbage_covariance=garbage_covariance,
        states=_states(stats.counts, beliefs),
        class_prior=_smoothed(stats.counts[:, :k].sum(axis=0), data.frequencies),
        garbage_labels=data.frequencies,
        center_variance=last.center_variance,
    )


def _covariances(
    data: MixtureData | RunningMoments,
    stats: Statistics,
    beliefs: Beliefs,
    shrinkage: Shrinkage,
    means: Array,
    n_states: Array,
) -> tuple[Covariance, Covariance]:
    form = data.structure
    inside = stats.sums if beliefs.garbage == "shared" else stats.sums[:-1]
    used = means[: len(inside)]
    count = n_states[: len(inside)]
    total = data.total if beliefs.garbage == "shared" else data.total - stats.garbage
    scatter = total - 2.0 * cross(form, inside, used) + cross(form, used * count[:, None], used)
    common = {"n_total": data.n_total, "target": shrinkage.target, "floor": _FLOOR * data.variance}
    covariance = estimate(form, scatter, float(count.sum()), pull=shrinkage.pull, **common)
    if beliefs.noise_variance is not None:
        covariance = covariance.scaled(beliefs.noise_variance / covariance.mean_variance)
    if beliefs.garbage == "shared":
        return covariance, covariance
    own = means[-1:]
    scatter = stats.garbage - 2.0 * cross(form, stats.sums[-1:], own) + cross(form, own * n_states[-1], own)
    # a handful of outliers says little of their spread: they borrow the pull of all examples
    pull = max(shrinkage.pull, _GARBAGE_PULL)
    return covariance, estimate(form, scatter, float(n_states[-1]), pull=pull, **common)


def _states(counts: Array, beliefs: Beliefs) -> Array:
    """Fractions of right label, wrong label, garbage: most probable under a weak Beta prior."""
    right = float(np.trace(counts[:, :-1]))
    wrong = float(counts[:, :-1].sum()) - right
    garbage = float(counts[:, -1].sum())
    epsilon, lam = beliefs.contamination, beliefs.label_noise
    a = _STATE_PRIOR
    if epsilon is None and lam is None:
        all_ = right + wrong + garbage + 3 * a
        return np.array([right + a, wrong + a, garbage + a]) / all_
    if epsilon is None:
        epsilon = (1.0 - lam) * (garbage + a) / (right + wrong + garbage + 2 * a)  # type: ignore[operator]
    if lam is None:
        lam = (1.0 - epsilon) * (wrong + a) / (right + wrong + 2 * a)
    return np.array([max(1.0 - epsilon - lam, 0.0), lam, epsilon])


def _smoothed(counts: Array, frequencies: Array) -> Array:
    weights = counts + _LABEL_PRIOR * frequencies
    return np.asarray(weights / weights.sum())


def center_uncertainty(data: MixtureData, stats: Statistics, mixture: Mixture) -> float:
    """Posterior variance of a coordinate of a centre, in units of the noise variance."""
    informative = stats.counts[:, :-1].sum()
    return float(
        1.0
        / (informative / (data.n_classes - 1) + mixture.covariance.mean_variance / mixture.center_variance)
    )


def moment_center_variance(data: MixtureData | RunningMoments, mixture: Mixture) -> float:
    """Variance of a centre's coordinate by moments: what the class means' contrasts have beyond noise.

    E|Hebb|² = (right - wrong/(K-1))² |C|² + noise, whoever is an outlier. Learning τ² from the centre that EM
    found would be circular: where P is about N a collapsing prior and a collapsing centre confirm each other.
    """
    k, n = data.n_classes, data.n_total
    noise = mixture.covariance.mean_variance
    hebb = data.hebb
    square = noise * float(np.vdot(mixture.covariance.solve(hebb), hebb))
    spread = (
        noise * ((k - 1.0) / k) ** 2 * float((1.0 / np.maximum(data.count * data.frequencies, 1.0)).sum())
    )
    signal = max(square - n * spread, spread * np.sqrt(2.0 * n / (k - 1.0)))
    right, wrong = mixture.states[0], mixture.states[1] / (k - 1.0)
    return signal / (max(abs(right - wrong), 1e-3) ** 2 * n * (k - 1.0))


def prior_energy(data: MixtureData | RunningMoments, mixture: Mixture) -> float:
    """Minus the log prior of centres and fractions."""
    ridge = mixture.covariance.mean_variance / mixture.center_variance
    value = 0.5 * ridge * float(np.vdot(mixture.covariance.solve(mixture.centers), mixture.centers))
    size = (data.n_classes - 1) * data.n_total
    value += 0.5 * size * np.log(2 * np.pi * mixture.center_variance)
    value -= _STATE_PRIOR * float(np.log(mixture.states[mixture.states > 0.0]).sum())
    frequencies = data.frequencies * np.log(np.maximum(mixture.class_prior, 1e-300))
    return value - _LABEL_PRIOR * float(frequencies.sum())


def covariance_energy(mixture: Mixture, shrinkage: Shrinkage) -> float:
    """Minus the log prior of the covariances, which is what shrinks them.

    Needed to climb; left out of the energy that is reported, since its strength is set from the data
    and differs from start to start.
    """
    clouds = [(mixture.covariance, shrinkage.pull)]
    if not mixture.shared:
        clouds.append((mixture.garbage_covariance, max(shrinkage.pull, _GARBAGE_PULL)))
    value = 0.0
    for cloud, pull in clouds:
        if cloud.structure == "spherical":
            inverse = cloud.n_total * float(shrinkage.target) / float(cloud.values)
        elif cloud.structure == "diag":
            inverse = float((shrinkage.target / cloud.values).sum())
        else:
            inverse = float(shrinkage.target) * float(np.trace(cloud.solve(np.eye(cloud.n_working))))
            rest = cloud.n_total - cloud.n_working
            inverse += rest * float(shrinkage.target) / cloud.outside if rest else 0.0
        value += 0.5 * pull * (cloud.log_det + inverse)
    return value


def shrinkage_for(data: MixtureData | RunningMoments, count: float, scatter: Any) -> Shrinkage:
    """Set how strongly, and towards what, the covariances are shrunk."""
    if data.structure == "spherical":
        return Shrinkage(pull=_SPHERE_PULL, target=data.variance)
    if data.structure == "diag":
        return Shrinkage(pull=_DIAG_PULL, target=np.maximum(data.total / data.count, _FLOOR * data.variance))
    intensity = min(oracle_shrinkage(scatter, count, data.n_total), 0.999)
    target = float(np.trace(scatter)) / count / data.n_total
    return Shrinkage(pull=count * intensity / (1.0 - intensity), target=target)


def mixture_at(data: MixtureData, beliefs: Beliefs, centers: Array) -> Mixture:
    """Neutral mixture around given centres: half of what is to be learned is garbage."""
    epsilon = beliefs.contamination
    lam = beliefs.label_noise
    if lam is None:
        lam = 0.25 * (1.0 - (epsilon or 0.0)) if epsilon is not None and epsilon < 0.01 else 0.1
    if epsilon is None:
        epsilon = 0.5 * (1.0 - lam)
    scale = beliefs.noise_variance or data.variance
    if data.structure == "spherical":
        values: Any = scale
        outside = 0.0
    elif data.structure == "diag":
        values = np.maximum(data.total / data.count, _FLOOR * data.variance)
        outside = 0.0
    else:
        n = len(data.total)
        share = oracle_shrinkage(data.total, data.count, data.n_total)
        values = (1.0 - share) * data.total / data.count + (share + _FLOOR) * data.variance * np.eye(n)
        outside = (share + _FLOOR) * data.variance
    covariance = Covariance(
        structure=data.structure, values=values, n_total=data.n_total, outside=max(outside, 1e-12)
    )
    origin = np.zeros(centers.shape[1])
    tau2 = beliefs.center_variance
    if tau2 is None:
        tau2 = data.variance
    mixture = Mixture(
        midpoint=origin,
        centers=centers,
        garbage_center=origin,
        covariance=covariance,
        garbage_covariance=covariance if beliefs.garbage == "shared" else covariance.scaled(1.0),
        states=np.array([1.0 - epsilon - lam, lam, epsilon]),
        class_prior=data.frequencies,
        garbage_labels=data.frequencies,
        center_variance=tau2,
    )
    if beliefs.center_variance is None:
        mixture = replace(mixture, center_variance=moment_center_variance(data, mixture))
    return mixture
