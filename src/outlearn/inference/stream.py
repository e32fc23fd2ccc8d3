"""The mixture of a stream: batch after batch, with a memory that fades slowly."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from outlearn.inference.mixture import Beliefs, Mixture
from outlearn.inference.mixture_data import MixtureData, Statistics, contrast_centers, moment_mean
from outlearn.inference.mixture_fit import MixtureFit, distance_between, fit_mixture
from outlearn.inference.mixture_step import (
    maximise,
    mixture_at,
    moment_center_variance,
    prior_energy,
    shrinkage_for,
)
from outlearn.inference.results import FitStatus

__all__ = ["RunningMoments"]

Array = NDArray[np.float64]

_FADING = 0.7  # a batch that is a share s of all examples so far moves the averages by s**0.7


class RunningMoments:
    """Sufficient statistics of a stream: stochastic EM with a memory that fades slowly.

    Speaks the M step's language (count, frequencies, second moment), in the coordinates of the first batch.
    """

    def __init__(self) -> None:
        self.origin: Any = None
        self.scale: Any = None
        self.mixture: Mixture | None = None
        self.seen = 0.0
        self.count = 0.0
        self.total: Any = None
        self.stats: Any = None
        self._averages: list[Any] = []

    def learn(self, data: MixtureData, beliefs: Beliefs, hard: bool) -> MixtureFit:
        """Take in one batch: its expected statistics under the present mixture, then one M step."""
        if self.mixture is None:
            start = mixture_at(data, beliefs, data.hebb)
            fit = fit_mixture(data, beliefs, start, max_iter=200, tol=1e-4, hard=hard, name="hebb")
            self.origin, self.scale, self.mixture = data.origin, data.scale, fit.mixture
            self.n_classes, self.n_total, self.structure = data.n_classes, data.n_total, data.structure
            self._blend(data, data.statistics(fit.mixture, hard=hard), 1.0)
            self.seen = data.count
            return replace(fit, status=FitStatus.CONVERGED)
        self.seen += data.count
        stats = data.statistics(self.mixture, hard=hard)
        self._blend(data, stats, min(1.0, (data.count / self.seen) ** _FADING))
        shrinkage = shrinkage_for(self, self.count, self.total)
        mixture = maximise(self, self.stats, beliefs, shrinkage, self.mixture)
        if beliefs.center_variance is None:
            mixture = replace(mixture, center_variance=moment_center_variance(self, mixture))
        moved = distance_between(mixture, self.mixture)
        self.mixture = mixture
        return MixtureFit(
            mixture=mixture,
            energy=prior_energy(self, mixture) - stats.log_likelihood,
            n_iter=1,
            status=FitStatus.CONVERGED,
            residual=moved,
            start="stream",
        )

    def _blend(self, data: MixtureData, stats: Statistics, step: float) -> None:
        """Averages per example, then scaled to the number of examples seen."""
        new = [
            stats.sums,
            stats.counts,
            stats.garbage,
            data.total,
            data.label_sums,
            data.label_weights.sum(axis=0),
        ]
        new = [value / data.count for value in new]
        old = new if step >= 1.0 else self._averages
        self._averages = [(1.0 - step) * a + step * b for a, b in zip(old, new, strict=True)]
        n = max(self.seen, data.count)
        sums, counts, garbage, total, label_sums, label_counts = (n * value for value in self._averages)
        self.stats = Statistics(
            sums=sums, counts=counts, garbage=garbage, log_likelihood=stats.log_likelihood
        )
        self.count, self.total = n, total
        self.frequencies = label_counts / n
        self.hebb = contrast_centers(label_sums, label_counts)
        self.variance = moment_mean(self.structure, total, self.n_total) / n
