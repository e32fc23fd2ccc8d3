"""The two training energies, with all their constants: minus the log of a joint density."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from outlearn.exceptions import DataError
from outlearn.model.ensemble import Ensemble, checked_ensemble

__all__ = ["hard_energy", "soft_energy"]

_LARGEST = 1e100


def soft_energy(J: ArrayLike, X: ArrayLike, y: ArrayLike, ensemble: Ensemble) -> float:
    """Training energy of the soft selection, H(J) = -ln P(D, J) (Eq. energy).

    The decision variables are summed out; γ̃ and η̃ are the learner's.

    >>> round(soft_energy([1.0], [[0.5]], [1], Ensemble(eta=0.0, gamma=1.0)), 6)
    3.156024
    """
    x, s = _checked(X, y, ensemble)
    j = _real("J", J)
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
    left out here so that the value is the logarithm of the density; infinite where there are no outliers
    (eta = -inf) and an example is rejected all the same.

    >>> round(hard_energy([1], [[0.5]], [1], Ensemble(eta=0.0, gamma=1.0)), 6)
    2.714306
    """
    x, s = _checked(X, y, ensemble)
    v = _real("V", V)
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
        - gamma * float(total @ total) * (gamma / precision) / (2 * n)
    )


def _noise_terms(x: NDArray[Any], gamma: float) -> float:
    """What every energy shares: labels drawn by a coin, inputs from a Gaussian at zero."""
    p, n = x.shape
    return float(p * np.log(2.0) - 0.5 * p * n * np.log(gamma / (2 * np.pi)) + 0.5 * gamma * np.vdot(x, x))


def _checked(X: ArrayLike, y: ArrayLike, ensemble: Ensemble) -> tuple[NDArray[Any], NDArray[np.float64]]:
    checked_ensemble(ensemble)
    x, s = _real("X", X), _real("y", y)
    if x.ndim != 2 or x.size == 0:
        raise DataError(f"X must be a non-empty matrix, not an array of shape {x.shape}")
    if s.shape != (x.shape[0],) or not np.isin(s, (-1.0, 1.0)).all():
        raise DataError(f"y must be {x.shape[0]} labels, -1 or +1")
    return x, s


def _real(name: str, values: Any) -> NDArray[np.float64]:
    """Real numbers whose squares are finite."""
    if hasattr(values, "toarray"):
        values = values.toarray()
    try:
        given = np.asarray(values)
        numbers = np.asarray(given, dtype=np.float64) if given.dtype.kind != "c" else None
    except (TypeError, ValueError):
        numbers = None
    if numbers is None:
        raise DataError(f"{name} cannot be read as real numbers")
    if not (np.abs(numbers) < _LARGEST).all():
        raise DataError(f"{name} holds NaN, infinity or numbers too large to square (from {_LARGEST:g})")
    return numbers
