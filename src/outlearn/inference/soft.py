"""Soft selection: the most probable centre, the decision variables summed out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from outlearn.inference.fitting import fit
from outlearn.inference.results import FitResult

__all__ = ["soft_em"]


def soft_em(
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
    accelerate: bool = True,
    sample_weight: ArrayLike | None = None,
    rng: np.random.Generator | int | None = None,
    n_threads: int = 1,
    trace: bool = False,
) -> FitResult:
    """Minimise the energy H(J) of the soft selection by EM (Eqs. energy, postv).

    In raw units: each example gets the weight w = sigma(x.c/s2 - |c|^2/(2 s2) - eta), the new centre is
    sum(w x)/(sum(w) + s2/tau2), rows folded by their labels. With ``center_variance`` learned the energy is
    the variational one, in which the centre has a posterior variance.

    Parameters
    ----------
    X : array, CSR matrix or Reads
        (n_samples, n_features); float32 and float64 are used as they are.
    y : array of -1 and +1, optional
        Labels; None when the rows are folded already.
    contamination : float
        Outlier fraction 1/(1 + exp(-eta)), in [0, 1).
    noise_variance : float
        Variance of a cluster, 1/gamma.
    center_variance : float, optional
        Prior variance of a coordinate of the centre; 1/N when left out, as in the paper.
    learn : names
        Which of these three are learned; the values given are then where they begin.
    init : str or array
        "hebb", "random" (``n_init`` draws from the prior), "spectral", another registered name, centres (N,)
        or (K, N), or "auto": Hebb, spectral and ``n_init`` random ones. The lowest energy is returned.
    max_iter : int
        Passes per start.
    tol : float
        Largest |F(c) - c|/|c| that counts as converged (floored at rounding).
    accelerate : bool
        Extrapolate where the energy does not rise by it; False for plain EM. It may change the basin reached.
    sample_weight : array, optional
        Multiplicity of each example.
    rng : Generator or int, optional
        For the random starts.
    n_threads : int
        Most threads used to read the data.
    trace : bool
        Keep the energy of every accepted step in ``energies``.

    Examples
    --------
    >>> from outlearn.model import Ensemble, angle, sample
    >>> data = sample(Ensemble.from_contamination(0.5, gamma=10.0), 100, 2000, rng=0)
    >>> fit = soft_em(data.X, data.y, contamination=0.5, noise_variance=0.1, rng=0)
    >>> R, Q = fit.center @ data.center / 10, fit.center @ fit.center
    >>> fit.converged, bool(angle(R, Q) < 0.045)
    (True, True)
    """
    return fit(
        X,
        y,
        hard=False,
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
