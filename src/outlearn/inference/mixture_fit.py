"""EM for the contaminated mixture: the climb from one start."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from outlearn.inference.covariance import Covariance, cross
from outlearn.inference.mixture import Beliefs, Mixture
from outlearn.inference.mixture_data import MixtureData, Statistics
from outlearn.inference.mixture_step import (
    center_uncertainty,
    covariance_energy,
    maximise,
    mixture_at,
    moment_center_variance,
    prior_energy,
    shrinkage_for,
)
from outlearn.inference.results import FitStatus

__all__ = ["MixtureFit", "distance_between", "fit_mixture"]

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MixtureFit:
    """A fitted mixture and how it came about."""

    mixture: Mixture
    energy: float
    n_iter: int
    status: FitStatus
    residual: float
    start: str
    spread: float = 0.0
    energies: tuple[float, ...] = ()


def fit_mixture(
    data: MixtureData,
    beliefs: Beliefs,
    start: Mixture | Array,
    *,
    max_iter: int = 1000,
    tol: float = 1e-5,
    hard: bool = False,
    name: str = "given",
    accelerate: bool = True,
    record: bool = False,
) -> MixtureFit:
    """Climb from one start: a mixture, or probabilities of the states (P, K+1) of every example.

    EM with guarded extrapolation (SQUAREM): an extrapolated point is kept only where the energy does not
    rise. Learned hyperparameters (prior of the centres, shrinkage) follow between cycles. The residual is
    that of a plain EM step, relative to the distance of the class means.
    """
    climb = _Climb(data, beliefs, hard)
    if isinstance(start, Mixture):
        mixture = start
    else:
        neutral = mixture_at(data, beliefs, data.hebb)
        stats = data.statistics_of(start)
        climb.follow(stats, neutral)
        mixture = maximise(data, stats, beliefs, climb.shrinkage, neutral)
    if climb.shrinkage is None:
        climb.follow(data.statistics(mixture), mixture)
    energies: list[float] = []
    n_iter, residual, status = 0, np.inf, FitStatus.MAX_ITER
    energy = np.inf
    while n_iter < max_iter:
        first, stats0, energy = climb.step(mixture)
        n_iter += 1
        energies.append(energy)
        residual = distance_between(first, mixture)
        if residual < tol:
            status = FitStatus.CONVERGED
            mixture = first
            break
        if not accelerate or n_iter >= max_iter:
            mixture = first
            climb.follow(stats0, mixture)
            mixture = climb.hyper(stats0, mixture)
            continue
        second, stats1, energy1 = climb.step(first)
        n_iter += 1
        energies.append(energy1)
        best = climb.extrapolate(mixture, first, second)
        if best is not None:
            third, stats2, energy2 = climb.step(best)
            n_iter += 1
            if np.isfinite(energy2) and energy2 <= energy1:
                energies.append(energy2)
                second, stats1 = third, stats2
        climb.follow(stats1, second)
        mixture = climb.hyper(stats1, second)
    final = data.statistics(mixture, spread=climb.spread, hard=hard)
    energy = prior_energy(data, mixture) - final.log_likelihood
    if data.n_classes == 2 and mixture.states[1] > mixture.states[0] and beliefs.label_noise is None:
        mixture = replace(
            mixture,
            centers=-mixture.centers,
            states=mixture.states[[1, 0, 2]],
            class_prior=mixture.class_prior[::-1].copy(),
        )
    informative = float(final.counts[:, :-1].sum())
    if informative < min(2.0 * data.n_classes, 0.5 * data.count):
        status = FitStatus.ALL_REJECTED
    return MixtureFit(
        mixture=mixture,
        energy=energy + 0.5 * climb.log_precision(final, mixture),
        n_iter=n_iter,
        status=status,
        residual=float(residual),
        start=name,
        spread=climb.spread,
        energies=tuple(energies) if record else (),
    )


class _Climb:
    """One climb's objective: hyperparameters fixed within a cycle, followed between cycles."""

    def __init__(self, data: MixtureData, beliefs: Beliefs, hard: bool) -> None:
        self.data, self.beliefs, self.hard = data, beliefs, hard
        self.shrinkage: Any = None
        self.spread = 0.0
        self.refreshes = 0

    def step(self, mixture: Mixture) -> tuple[Mixture, Statistics, float]:
        stats = self.data.statistics(mixture, spread=self.spread, hard=self.hard)
        after = maximise(self.data, stats, self.beliefs, self.shrinkage, mixture)
        return after, stats, self.energy(mixture, stats)

    def energy(self, mixture: Mixture, stats: Statistics) -> float:
        prior = prior_energy(self.data, mixture) + covariance_energy(mixture, self.shrinkage)
        return prior - stats.log_likelihood

    def follow(self, stats: Statistics, mixture: Mixture) -> None:
        """Follow the hyperparameters of the covariance for the first cycles, then hold them."""
        if self.hard:
            size = 0.5 * self.data.n_total * (self.data.n_classes - 1)
            self.spread = size * center_uncertainty(self.data, stats, mixture)
        if self.refreshes >= 8 and self.shrinkage is not None:
            return
        if self.shrinkage is not None and self.data.structure != "tied":
            return
        self.refreshes += 1
        data, n_states = self.data, stats.counts.sum(axis=0)
        own = self.beliefs.garbage != "shared"
        inside = stats.sums[:-1] if own else stats.sums
        means = np.vstack([mixture.means, mixture.garbage_center])[: len(inside)]
        count = n_states[: len(inside)]
        total = data.total - stats.garbage if own else data.total
        scatter = total - 2.0 * cross(data.structure, inside, means)
        scatter = scatter + cross(data.structure, means * count[:, None], means)
        self.shrinkage = shrinkage_for(data, max(float(count.sum()), 1.0), scatter)

    def hyper(self, stats: Statistics, mixture: Mixture) -> Mixture:
        if self.beliefs.center_variance is not None:
            return mixture
        return replace(mixture, center_variance=moment_center_variance(self.data, mixture))

    def log_precision(self, stats: Statistics, mixture: Mixture) -> float:
        """Log determinant of the centres' posterior precision: makes learned priors comparable."""
        if self.beliefs.center_variance is not None:
            return 0.0
        size = self.data.n_total * (self.data.n_classes - 1)
        variance = center_uncertainty(self.data, stats, mixture) * mixture.covariance.mean_variance
        return -size * np.log(2 * np.pi * variance)

    def extrapolate(self, a: Mixture, b: Mixture, c: Mixture) -> Mixture | None:
        """Squared extrapolation through three EM iterates, in coordinates without borders."""
        va, vb, vc = (_pack(m) for m in (a, b, c))
        r = vb - va
        v = (vc - vb) - r
        norm = np.linalg.norm(v)
        if norm == 0.0:
            return None
        length = min(max(float(np.linalg.norm(r) / norm), 1.0), 32.0)
        if length <= 1.0:
            return None
        point = va + 2.0 * length * r + length**2 * v
        if not np.isfinite(point).all():
            return None
        try:
            return _unpack(point, c, self.beliefs)
        except np.linalg.LinAlgError:  # a covariance left the cone of positive ones
            return None


def distance_between(a: Mixture, b: Mixture) -> float:
    """How far two mixtures are: of the centres relative to their length, and of the fractions."""
    scale = np.linalg.norm(a.centers) + 1e-300
    moved = float(np.linalg.norm(a.centers - b.centers) / scale)
    return max(moved, float(np.abs(a.states - b.states).max()))


def _pack(m: Mixture) -> Array:
    unit = np.sqrt(m.covariance.mean_variance)
    parts = [m.midpoint / unit, m.centers.ravel() / unit, m.garbage_center / unit]
    for cloud in (m.covariance, m.garbage_covariance):
        values = cloud.values if cloud.structure == "tied" else np.log(cloud.values)
        parts.append(np.ravel(values))
    for part in (m.states, m.class_prior):
        parts.append(np.log(np.maximum(part, 1e-300)))
    return np.concatenate([np.ravel(part) for part in parts])


def _unpack(vector: Array, like: Mixture, beliefs: Beliefs) -> Mixture:
    unit = np.sqrt(like.covariance.mean_variance)
    at = 0

    def take(shape: tuple[int, ...]) -> Array:
        nonlocal at
        size = int(np.prod(shape))
        at += size
        return vector[at - size : at].reshape(shape)

    midpoint = take(like.midpoint.shape) * unit
    centers = take(like.centers.shape) * unit
    garbage_center = take(like.garbage_center.shape) * unit
    if like.garbage_center is like.midpoint:
        garbage_center = midpoint
    clouds = []
    for cloud in (like.covariance, like.garbage_covariance):
        values = take(cloud.values.shape)
        values = values if cloud.structure == "tied" else np.exp(np.clip(values, -600, 600))
        clouds.append(
            Covariance(structure=cloud.structure, values=values, n_total=cloud.n_total, outside=cloud.outside)
        )
    fractions = []
    for part in (like.states, like.class_prior):
        value = np.exp(np.minimum(take(part.shape), 0.0))
        value[np.asarray(part) == 0.0] = 0.0
        fractions.append(value / value.sum())
    states = like.states
    if beliefs.contamination is None or beliefs.label_noise is None:
        known = (beliefs.contamination is not None, beliefs.label_noise not in (None,))
        states = fractions[0].copy()
        if known[0]:
            states[2] = like.states[2]
            states[:2] *= (1.0 - states[2]) / states[:2].sum()
        elif known[1]:
            states[1] = like.states[1]
            rest = states[0] + states[2]
            states[[0, 2]] *= (1.0 - states[1]) / rest
    return Mixture(
        midpoint=midpoint,
        centers=centers,
        garbage_center=garbage_center,
        covariance=clouds[0],
        garbage_covariance=clouds[0] if like.shared else clouds[1],
        states=states,
        class_prior=fractions[1],
        garbage_labels=like.garbage_labels,
        center_variance=like.center_variance,
    )
