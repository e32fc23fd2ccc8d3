"""The two training energies, with all their constants: minus the log of a joint density."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from outlearn.exceptions import DataError
from outlearn.model.ensemble import Ensemble

__all__ = ["hard_energy", "soft_energy"]


def soft_energy(J: ArrayLike, X: ArrayLike, y: ArrayLike, ensemble: Ensemble) -> float:
    """Training energy of the soft selection, H(J) = -ln P(D, J) (Eq. energy).

    The decision variables are summed out; γ̃ and η̃ are the learner's.

    >>> round(soft_energy([1.0], [[0.5]], [1], Ensemble(eta=0.0, gamma=1.0)), 6)
    3.156024
    """
    x, s = _checked(X, y)
    j = np.asarray(J, dtype=np.float64)
    if j.shape != (x.shape[1],):
        raise DataError(f"J has shape {j.shape}, X has {x.shape[1]} features")
    n = x.shape[1]
    gamma, eta = ensemble.gamma_tilde, ensemble.eta_tilde
    field = gamma * s * (x @ j) / np.sqrt(n) - gamma * float(j @ j) / (2 * n)
    # ln of p0 + p1 exp(field), without forming exp(-eta) which may overflow
    log_p1, log_p0 = -np.logaddexp(0.0, eta), -np.logaddexp(0.0, -eta)
    mixture = np.logaddexp(log_p0, log_p1 + field).sum()
    return float(_noise_terms(x, gamma) - mixture + 0.5 * n * np.log(2 * np.pi) + 0.5 * float(j @ j))


def hard_energy(V: ArrayLike, X: ArrayLike, y: ArrayLike, ensemble: Ensemble) -> float:
    """Training energy of the hard selection, H_h(V) = -ln ∫dJ P(D, J, V) (Eq. henergy).

    The appendix's constant C carries a factor (2π)^(-N/2) that the integral over J cancels; it is
    left out here so that the value is the logarithm of the density.

    >>> round(hard_energy([1], [[0.5]], [1], Ensemble(eta=0.0, gamma=1.0)), 6)
    2.714306
    """
    x, s = _checked(X, y)
    v = np.asarray(V, dtype=np.float64)
    if v.shape != (x.shape[0],) or not np.isin(v, (0.0, 1.0)).all():
        raise DataError(f"V must be {x.shape[0]} values 0 or 1")
    n = x.shape[1]
    gamma, eta = ensemble.gamma_tilde, ensemble.eta_tilde
    total = (v * s) @ x
    precision = gamma * v.sum() / n + 1.0
    selected, rejected = v.sum(), v.size - v.sum()
    prior = selected * np.logaddexp(0.0, eta)
    if rejected:
        prior += rejected * np.logaddexp(0.0, -eta)
    return float(
        _noise_terms(x, gamma)
        + prior
        + 0.5 * n * np.log(precision)
        - gamma**2 * float(total @ total) / (2 * n * precision)
    )


def _noise_terms(x: NDArray[Any], gamma: float) -> float:
    """What every energy shares: labels drawn by a coin, inputs from a Gaussian at zero."""
    p, n = x.shape
    return float(p * np.log(2.0) - 0.5 * p * n * np.log(gamma / (2 * np.pi)) + 0.5 * gamma * np.vdot(x, x))


def _checked(X: ArrayLike, y: ArrayLike) -> tuple[NDArray[Any], NDArray[np.float64]]:
    x = np.asarray(X, dtype=np.float64)
    s = np.asarray(y, dtype=np.float64)
    if x.ndim != 2 or x.size == 0:
        raise DataError(f"X must be a non-empty matrix, not an array of shape {x.shape}")
    if s.shape != (x.shape[0],) or not np.isin(s, (-1.0, 1.0)).all():
        raise DataError(f"y must be {x.shape[0]} labels, -1 or +1")
    return x, s
