"""Hard selection: every example is kept or thrown out."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from outlearn.estimators.base import Finished
from outlearn.estimators.soft import SoftSelectionClassifier
from outlearn.inference.mixture import Beliefs
from outlearn.inference.mixture_data import MixtureData
from outlearn.inference.mixture_fit import MixtureFit, fit_mixture

__all__ = ["HardSelectionClassifier"]


class HardSelectionClassifier(SoftSelectionClassifier):
    """Decide for every example whether it is informative, and learn from those kept (Eq. henergy).

    The fractions and the noise are learned softly, since counting decisions would bias them; then the
    decisions are made at these values, with the uncertainty of the centres taken along (⟨J²⟩).
    Parameters and attributes are those of :class:`SoftSelectionClassifier`, but ``inlier_proba_`` holds the
    decisions, 0 or 1.

    Examples
    --------
    >>> from outlearn import Ensemble, sample
    >>> data = sample(Ensemble.from_contamination(0.5, gamma=10.0), 50, 1000, rng=0)
    >>> model = HardSelectionClassifier(covariance="spherical", label_noise=0).fit(data.X, data.y)
    >>> sorted(set(model.inlier_proba_.tolist()))
    [0.0, 1.0]
    """

    _hard: ClassVar[bool] = True

    def _finish(
        self, data: MixtureData, beliefs: Beliefs, fit: MixtureFit, rng: np.random.Generator
    ) -> Finished:
        m = fit.mixture
        fixed = Beliefs(
            contamination=float(m.states[2]),
            label_noise=float(m.states[1]),
            noise_variance=float(m.covariance.mean_variance),
            center_variance=float(m.center_variance),
            garbage=beliefs.garbage,
        )
        hard = fit_mixture(data, fixed, m, max_iter=self.max_iter, tol=self.tol, hard=True, name=fit.start)
        states = data.responsibilities(hard.mixture, spread=hard.spread, hard=True)
        return Finished(
            mixture=hard.mixture,
            inlier_proba=states[np.arange(len(data.labels)), data.labels],
            energy=hard.energy,
            n_iter=fit.n_iter + hard.n_iter,
            status=hard.status,
        )
