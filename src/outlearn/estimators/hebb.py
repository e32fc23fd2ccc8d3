"""Hebb's rule: every example counts, every label is taken at its word."""

from __future__ import annotations

from typing import Any

from outlearn.estimators.base import SelectionClassifier

__all__ = ["HebbClassifier"]


class HebbClassifier(SelectionClassifier):
    """Average all examples, folded by their labels: the baseline that selects nothing.

    For two classes and one variance, the classifier of the nearest class mean. It finds the direction of the
    centres from enough data, but their length is too short by the fraction of outliers.

    Parameters
    ----------
    noise_variance, center_variance, covariance, n_jobs
        As of :class:`SoftSelectionClassifier`; one variance by default.
    n_init, max_iter, tol, warm_start, random_state
        Accepted so that the classifiers can take each other's place; there is one optimum, found at once.

    Examples
    --------
    >>> from outlearn import Ensemble, sample
    >>> data = sample(Ensemble.from_contamination(0.5, gamma=10.0), 50, 1000, rng=0)
    >>> HebbClassifier().fit(data.X, data.y).centers_.shape
    (2, 50)
    """

    def __init__(
        self,
        *,
        noise_variance: Any = "auto",
        center_variance: Any = "auto",
        covariance: str = "spherical",
        n_init: int = 1,
        max_iter: int = 1000,
        tol: float = 1e-5,
        warm_start: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.noise_variance = noise_variance
        self.center_variance = center_variance
        self.covariance = covariance
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
