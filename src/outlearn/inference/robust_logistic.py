"""Garbage-aware logistic regression: the discriminative member of the family.

A label is informative with probability 1 - ε and a fair coin among the K classes otherwise,

    p(y | x) = (1 - ε) softmax_y(W x + b) + ε/K,

so the gradient of ln p is that of logistic regression with every example weighted by the posterior
probability r = (1 - ε) softmax_y / p(y | x) that its label is informative: the V of Eq. postv, without a
model of the inputs. At ε = 0 this is plain logistic regression. Flipped labels are covered: two-class flips
at rate ρ are ε = 2ρ.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, optimize, sparse
from scipy.special import expit, log_expit, log_softmax, logsumexp

__all__ = ["RobustLogistic", "Tuned", "label_loss", "robust_logistic", "tuned_robust_logistic"]

Array = NDArray[np.float64]
Labels = NDArray[np.intp]

PENALTIES = tuple(float(c) for c in 10.0 ** np.arange(4.0, -1.6, -0.75))
SHARES = (0.0, 0.1, 0.25, 0.45, 0.65, 0.85)
_SCAN_STEPS, _SCAN_TOL = 60, 1e-4


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RobustLogistic:
    """A fitted garbage-aware logistic regression: one row of ``coef`` for two classes, K rows for more."""

    coef: Array
    intercept: Array
    contamination: float
    penalty: float
    n_iter: int
    converged: bool

    @property
    def n_classes(self) -> int:
        """K."""
        return 2 if len(self.coef) == 1 else len(self.coef)

    def scores(self, X: Any) -> Array:
        """(P, 1) log odds of the second of two classes, or (P, K) logits."""
        return np.asarray(X @ self.coef.T, dtype=np.float64) + self.intercept

    def log_label_proba(self, X: Any) -> Array:
        """(P, K): ln p(y | x), coins included."""
        return _log_mixed(_log_classes(self.scores(X)), self.contamination)

    def inlier_proba(self, X: Any, labels: Labels) -> Array:
        """(P,): probability that the label of each example is informative."""
        return _informative(self.scores(X), labels, self.contamination)

    def __repr__(self) -> str:
        return (
            f"garbage-aware logistic regression: contamination {self.contamination:.3g}, "
            f"penalty {self.penalty:.3g}, {self.n_classes} classes, {self.coef.shape[1]} features"
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tuned:
    """The regression whose penalty and contamination foretold held-out labels best."""

    fit: RobustLogistic
    held_out: Array
    """(P, 1 or K): scores of every example by the fit to the other folds, at the chosen values."""
    penalties: tuple[float, ...]
    shares: tuple[float, ...]
    table: Array
    """Mean held-out ln p(y | x) of the observed labels, one row per contamination; -inf: not tried."""

    def __repr__(self) -> str:
        return f"{self.fit!r}; held-out ln p(y | x) {self.table.max():.4f} of {self.table.size} trials"


def _log_classes(scores: Array) -> Array:
    if scores.shape[1] == 1:
        return np.hstack([log_expit(-scores), log_expit(scores)])
    return np.asarray(log_softmax(scores, axis=1))


def _log_mixed(log_classes: Array, contamination: float) -> Array:
    if contamination == 0.0:
        return log_classes
    coin = np.log(contamination / log_classes.shape[1])
    return np.logaddexp(log_classes + np.log1p(-contamination), coin)


def _informative(scores: Array, labels: Labels, contamination: float) -> Array:
    own = _log_classes(scores)[np.arange(len(labels)), labels]
    k = 2 if scores.shape[1] == 1 else scores.shape[1]
    if contamination == 0.0:
        return np.ones(len(labels))
    return np.asarray(expit(own + np.log1p(-contamination) - np.log(contamination / k)))


def label_loss(
    scores: Array, labels: Labels, contamination: float, coin: Array | None = None
) -> tuple[Array, Array]:
    """-ln p(y | x) of every example, and its derivative by the scores.

    ``coin`` (K,) is how often a label that is a coin shows every class; equally often when left out.
    """
    k = 2 if scores.shape[1] == 1 else scores.shape[1]
    by_chance = contamination / k if coin is None else contamination * coin[labels]
    if scores.shape[1] == 1:
        sign = 2.0 * labels - 1.0
        own = log_expit(sign * scores[:, 0])
        if contamination == 0.0:
            return -own, (-sign * expit(-sign * scores[:, 0]))[:, None]
        informative = own + np.log1p(-contamination)
        total = np.logaddexp(informative, np.log(by_chance))
        slope = -sign * np.exp(informative - total) * expit(-sign * scores[:, 0])
        return -total, slope[:, None]
    logs = scores - logsumexp(scores, axis=1, keepdims=True)
    own = logs[np.arange(len(labels)), labels]
    slope = np.exp(logs)
    slope[np.arange(len(labels)), labels] -= 1.0
    if contamination == 0.0:
        return -own, slope
    informative = own + np.log1p(-contamination)
    total = np.logaddexp(informative, np.log(by_chance))
    return -total, slope * np.exp(informative - total)[:, None]


def robust_logistic(
    X: Any,
    labels: Labels,
    n_classes: int,
    *,
    contamination: float = 0.0,
    penalty: float = 1.0,
    sample_weight: Array | None = None,
    start: RobustLogistic | None = None,
    max_iter: int = 1000,
    tol: float = 1e-7,
) -> RobustLogistic:
    """Minimise -Σ ln p(y | x) + penalty/2 |W|² over W and b, by L-BFGS.

    ``penalty`` is scikit-learn's 1/C. For ε > 0 there can be several minima; without ``start`` the search
    begins at W = 0, whose first step is Hebb's rule.
    """
    p, n = X.shape
    columns = 1 if n_classes == 2 else n_classes
    weights = np.ones(p) if sample_weight is None else sample_weight
    total = float(weights.sum())

    def objective(v: Array) -> tuple[float, Array]:
        V = v.reshape(columns, n + 1)
        W, b = V[:, :n], V[:, n]
        loss, slope = label_loss(np.asarray(X @ W.T) + b, labels, contamination)
        slope = slope * (weights / total)[:, None]
        gradient = np.empty_like(V)
        gradient[:, :n] = np.asarray(X.T @ slope).T + (penalty / total) * W
        gradient[:, n] = slope.sum(axis=0)
        value = float(weights @ loss) / total + 0.5 * penalty / total * float((W**2).sum())
        return value, gradient.ravel()

    first = np.zeros((columns, n + 1))
    if start is not None:
        first[:, :n], first[:, n] = start.coef, start.intercept
    found = optimize.minimize(
        objective,
        first.ravel(),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": max_iter, "maxfun": 3 * max_iter, "gtol": tol, "ftol": 1e-3 * tol},
    )
    V = found.x.reshape(columns, n + 1)
    intercept = V[:, n] if columns == 1 else V[:, n] - V[:, n].mean()
    return RobustLogistic(
        coef=V[:, :n].copy(),
        intercept=intercept.copy(),
        contamination=float(contamination),
        penalty=float(penalty),
        n_iter=int(found.nit),
        converged=bool(found.success),
    )


def tuned_robust_logistic(
    X: Any,
    labels: Labels,
    n_classes: int,
    fold: Labels,
    *,
    contamination: float | None = None,
    sample_weight: Array | None = None,
    penalties: Sequence[float] = PENALTIES,
    shares: Sequence[float] = SHARES,
) -> Tuned:
    """Choose penalty and contamination by the held-out ln p(y | x) of the observed labels, and fit to all.

    ``fold`` deals the examples out; ``contamination=None`` chooses it among ``shares``. With more features
    than examples the work is done in the examples' span, where an L2 penalty keeps the solution anyway.
    """
    weights = np.ones(X.shape[0]) if sample_weight is None else np.asarray(sample_weight)
    basis = _span(X)
    Z = X if basis is None else X @ basis.T
    tried = tuple(sorted(shares)) if contamination is None else (float(contamination),)
    strongest_first = tuple(sorted(penalties, reverse=True))
    shape = (len(tried), len(strongest_first))
    sums = np.zeros(shape)
    columns = 1 if n_classes == 2 else n_classes
    held = np.zeros((*shape, X.shape[0], columns))
    parts = []
    for f in range(int(fold.max()) + 1):
        rest, out = np.flatnonzero(fold != f), np.flatnonzero(fold == f)
        whole = len(np.unique(labels[rest])) == n_classes
        parts.append((Z[rest], Z[out], rest, out) if whole and len(out) else None)
    unlearned = sum(float(weights[fold == f].sum()) for f, part in enumerate(parts) if part is None)
    done = np.zeros(len(tried), dtype=bool)
    for i, share in enumerate(tried):
        for part in parts:
            if part is None:
                continue
            inside, outside, rest, out = part
            path = _path(inside, labels[rest], n_classes, share, strongest_first, weights[rest])
            for j, fit in enumerate(path):
                scores = fit.scores(outside)
                held[i, j, out] = scores
                sums[i, j] -= weights[out] @ label_loss(scores, labels[out], share)[0]
        sums[i] -= unlearned * np.log(n_classes)
        done[i] = True
        if i >= 2 and sums[i].max() < sums[i - 1].max() < sums[i - 2].max():
            break  # held-out likelihood falls on both sides of its top
    table = np.where(done[:, None], sums / weights.sum(), -np.inf)
    best_share, best_penalty = np.unravel_index(int(table.argmax()), shape)
    row, column = int(best_share), int(best_penalty)
    whole_path = _path(Z, labels, n_classes, tried[row], strongest_first[: column + 1], weights)
    fit = robust_logistic(
        Z,
        labels,
        n_classes,
        contamination=tried[row],
        penalty=strongest_first[column],
        sample_weight=weights,
        start=list(whole_path)[-1],
        tol=1e-9,
    )
    if basis is not None:
        fit = RobustLogistic(
            coef=fit.coef @ basis,
            intercept=fit.intercept,
            contamination=fit.contamination,
            penalty=fit.penalty,
            n_iter=fit.n_iter,
            converged=fit.converged,
        )
    return Tuned(fit=fit, held_out=held[row, column], penalties=strongest_first, shares=tried, table=table)


def _path(
    X: Any, labels: Labels, n_classes: int, share: float, penalties: Iterable[float], weights: Array
) -> Iterable[RobustLogistic]:
    """Fits from the strongest penalty on, each from the one before: near Hebb's rule there is one minimum."""
    fit = None
    for penalty in penalties:
        fit = robust_logistic(
            X,
            labels,
            n_classes,
            contamination=share,
            penalty=penalty,
            sample_weight=weights,
            start=fit,
            max_iter=_SCAN_STEPS,
            tol=_SCAN_TOL,
        )
        yield fit


def _span(X: Any) -> Array | None:
    """(r, N): orthonormal basis of the rows' span, where it is smaller than the space."""
    if sparse.issparse(X) or X.shape[0] >= X.shape[1]:
        return None
    values, vectors = linalg.eigh(np.asarray(X @ X.T, dtype=np.float64))
    kept = values > values[-1] * 1e-10
    return np.asarray((vectors[:, kept] / np.sqrt(values[kept])).T @ X)
