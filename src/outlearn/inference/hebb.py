"""Hebb's rule: every example believed, in closed form."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from outlearn.inference.fitting import readable
from outlearn.inference.results import FitResult, FitStatus
from outlearn.inference.selection import Beliefs, Selection
from outlearn.inference.starts import hebb_center

__all__ = ["hebb"]


def hebb(
    X: Any,
    y: ArrayLike | None = None,
    *,
    noise_variance: float,
    center_variance: float | None = None,
    sample_weight: ArrayLike | None = None,
    n_threads: int = 1,
) -> FitResult:
    """Return the Hebbian centre sum(x)/(P + s2/tau2) (Eq. Hebb), the limit eta -> -inf of both selections.

    >>> hebb([[1.0], [3.0]], [1, -1], noise_variance=1.0).center.tolist()
    [-0.6666666666666666]
    """
    reads = readable(X, y, sample_weight, n_threads)
    beliefs = Beliefs.of(0.0, noise_variance, center_variance, reads.shape[1])
    problem = Selection(reads, hard=False)
    center = hebb_center(reads, beliefs)
    step = problem.read([problem.state(center, beliefs)])[0]
    return FitResult(
        center=center,
        inlier_proba=np.ones(reads.shape[0]),
        energy=step.energy,
        n_iter=1,
        n_reads=reads.n_reads,
        status=FitStatus.CONVERGED,
        contamination=0.0,
        noise_variance=beliefs.noise_variance,
        center_variance=beliefs.center_variance,
    )
