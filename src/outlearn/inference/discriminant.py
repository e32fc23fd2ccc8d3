"""Linear discriminant analysis with a shrunk covariance, also with more features than examples.

With class means m_c and the covariance S within classes, the rule is w = Σ⁻¹ (m_2 - m_1) for
Σ = (1 - s) S + s tr(S)/N. The intensity s is that of Ledoit and Wolf (2004), which takes the scatter of the
examples' own second moments into account and so shrinks heavy-tailed data more. Labels enter through the
class means alone: it learns no more from them than Hebb's rule does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from outlearn.exceptions import DataError

__all__ = ["Discriminant", "discriminant"]

Array = NDArray[np.float64]
Labels = NDArray[np.intp]

_BLOCK = 1_000_000  # numbers centred at once
_LEAST = 1e-8  # shrinkage without which features that repeat each other would have no inverse covariance


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Discriminant:
    """A linear rule, one row of ``coef`` for two classes and K for more, and how much was shrunk."""

    coef: Array
    intercept: Array
    shrinkage: float


def discriminant(X: Any, labels: Labels, n_classes: int, weights: Array) -> Discriminant:
    """Fit to examples of given multiplicity; every class needs one.

    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(40) % 2
    >>> X = rng.standard_normal((40, 100)) + np.where(y == 1, 0.3, -0.3)[:, None]
    >>> rule = discriminant(X, y, 2, np.ones(40))
    >>> bool(((X @ rule.coef[0] + rule.intercept[0] > 0) == y).all())
    True
    """
    members = np.zeros((len(labels), n_classes))
    members[np.arange(len(labels)), labels] = weights
    counts = members.sum(axis=0)
    total, n = float(counts.sum()), X.shape[1]
    if (counts <= 0.0).any():
        raise DataError("a class has no examples")
    wide = len(X) < n
    step = len(X) if wide else max(1, _BLOCK // n)
    blocks = [slice(start, start + step) for start in range(0, len(X), step)]
    means = np.asarray(sum(members[rows].T @ X[rows] for rows in blocks)) / counts[:, None]
    norms = np.empty(len(X))
    gram = np.zeros((min(X.shape),) * 2)
    for rows in blocks:
        R = X[rows] - means[labels[rows]]
        norms[rows] = np.einsum("ij,ij->i", R, R)
        R *= np.sqrt(weights[rows] / total)[:, None]
        gram += R @ R.T if wide else R.T @ R
    variance = float(np.trace(gram)) / n
    if variance == 0.0:
        raise DataError("the examples of every class are all the same")
    squares = float(np.vdot(gram, gram))
    fourth = float(weights @ norms**2) / total
    excess = squares - n * variance**2
    s = 1.0 if excess <= 0.0 else min(1.0, max(0.0, fourth - squares) / total / excess)
    s = max(s, _LEAST)
    contrasts = means[1:] - means[:1] if n_classes == 2 else means - counts @ means / total
    ridge = s * variance
    if wide:
        inner = (1.0 - s) * gram + ridge * np.eye(len(gram))
        inside = linalg.solve(inner, R @ contrasts.T, assume_a="pos", check_finite=False)
        coef = (contrasts - (1.0 - s) * (R.T @ inside).T) / ridge
    else:
        inner = (1.0 - s) * gram + ridge * np.eye(n)
        coef = linalg.solve(inner, contrasts.T, assume_a="pos", check_finite=False).T
    logs = np.log(counts)
    if n_classes == 2:
        intercept = np.array([logs[1] - logs[0] - coef[0] @ (means[0] + means[1]) / 2.0])
    else:
        center = counts @ means / total
        intercept = logs - np.einsum("ij,ij->i", coef, (means + center) / 2.0)
    return Discriminant(coef=np.asarray(coef), intercept=intercept, shrinkage=float(s))
