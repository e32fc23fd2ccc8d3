"""Hard selection: the most probable decision variables, the centre integrated out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from outlearn.inference.fitting import fit
from outlearn.inference.results import FitResult

__all__ = ["hard_em"]


def hard_em(
    X: Any,
    y: ArrayLike | None = None,
    *,
    contamination: float,
    noise_variance: float,
    center_variance: float | None = None,
    learn: Iterable[str] = (),
    init: str | ArrayLike = "auto",
    n_init: int = 6,
    max_iter: int = 1000,
    tol: float = 1e-6,
    accelerate: bool = False,
    sample_weight: ArrayLike | None = None,
    rng: np.random.Generator | int | None = None,
    n_threads: int = 1,
    trace: bool = False,
) -> FitResult:
    """Minimise the energy H_h(V) of the hard selection by EM (Eq. henergy).

    The centre is the hidden quantity, Gaussian with mean sum(V x)/(sum(V) + s2/tau2) and variance
    1/(1/tau2 + sum(V)/s2); an example is kept iff x.c/s2 - <|c|^2>/(2 s2) - eta > 0, where <|c|^2> includes
    that variance. Hard selection has many fixed points: the lowest energy over the starts is returned
    (``"auto"`` adds the soft solution to them), and rejecting every example is reported as a status.

    Parameters are those of :func:`~outlearn.inference.soft.soft_em`; ``accelerate`` is off because plain EM
    ends on an exact fixed point after a few steps.

    >>> from outlearn.model import Ensemble, sample
    >>> data = sample(Ensemble(eta=0.0, gamma=10.0), 50, 500, rng=0)
    >>> fit = hard_em(data.X, data.y, contamination=0.5, noise_variance=0.1, rng=0)
    >>> fit.converged, sorted(set(fit.inlier_proba.tolist()))
    (True, [0.0, 1.0])
    """
    return fit(
        X,
        y,
        hard=True,
        contamination=contamination,
        noise_variance=noise_variance,
        center_variance=center_variance,
        learn=learn,
        init=init,
        n_init=n_init,
        max_iter=max_iter,
        tol=tol,
        accelerate=accelerate,
        sample_weight=sample_weight,
        rng=rng,
        n_threads=n_threads,
        trace=trace,
    )
