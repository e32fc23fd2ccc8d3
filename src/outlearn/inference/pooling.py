"""Compare linear rules by held-out labels, and pool those that cannot be told apart.

Every rule gives scores; what they say of the observed labels is brought to one form,

    p(y | x) = (1 - ε) softmax_y(a·score) + ε q_y   with a > 0,

so that rules are compared by their direction, not by how well they know their own certainty. The labels
of outliers are fair coins, q_y = 1/K, or as unequal as all labels are: whichever foretells better.
Weights are those of stacking: the mixture of the p(y | x) that foretells held-out labels best.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import optimize
from scipy.special import expit

from outlearn.inference.robust_logistic import label_loss

__all__ = ["Calibration", "behind", "calibrate", "looks_spherical", "stacking_weights"]

Array = NDArray[np.float64]
Labels = NDArray[np.intp]

_STARTS = (-6.0, 0.0, 2.0)  # log odds of the contamination
_WIDEST = 12.0  # slopes and contaminations beyond say the same
_FAIR = 0.01  # classes whose frequencies differ by less are equally frequent
_SPHERICAL = 1.5
_MOST_CELLS = 400_000
_PRIOR = 0.02  # a hair, on ln a and on the log odds of ε: keeps what the labels leave open from running away


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Calibration:
    """How a rule's scores turn into p(y | x) on the contaminated stream."""

    slope: float
    contamination: float
    coin: Array
    """(K,): q, how often the label of an outlier shows every class."""
    log_proba: Array
    """(P,): ln p of the observed label of every example used."""


def calibrate(scores: Array, labels: Labels, weights: Array) -> Calibration:
    """Fit slope and contamination to observed labels by penalised maximum likelihood.

    ``scores`` are (P, 1) log odds of the second of two classes, or (P, K). Where the rule puts its thresholds
    is left to the rule: a threshold set by noisy labels is worse than none.
    """
    k = 2 if scores.shape[1] == 1 else scores.shape[1]
    total = float(weights.sum())
    spread = max(float(np.sqrt(weights @ (scores**2).mean(axis=1) / total)), 1e-300)
    Z = scores / spread

    def objective(v: Array, coin: Array) -> tuple[float, Array]:
        slope, share = np.exp(v[0]), float(expit(v[1]))
        loss, slopes = label_loss(slope * Z, labels, share, coin)
        by_slope = slope * float(weights @ (slopes * Z).sum(axis=1)) / total
        # by the log odds of the share: the share now, minus the posterior probability that a label is a coin
        by_share = share - float(weights @ (share * coin[labels] * np.exp(loss))) / total
        value = float(weights @ loss) / total + _PRIOR / total * float(v @ v)
        return value, np.array([by_slope, by_share]) + 2.0 * _PRIOR / total * v

    frequencies = np.bincount(labels, weights, k) / total
    coins = [np.full(k, 1.0 / k)]
    if np.abs(frequencies - 1.0 / k).max() > _FAIR:
        coins.append(frequencies)
    runs = [
        (
            optimize.minimize(
                objective,
                np.array([0.0, start]),
                args=(coin,),
                jac=True,
                method="L-BFGS-B",
                bounds=[(-_WIDEST, _WIDEST)] * 2,
                options={"maxiter": 300, "gtol": 1e-10, "ftol": 1e-15},
            ),
            coin,
        )
        for coin in coins
        for start in _STARTS
    ]
    best, coin = min(runs, key=lambda run: float(run[0].fun))
    slope, share = float(np.exp(best.x[0])), float(expit(best.x[1]))
    return Calibration(
        slope=slope / spread,
        contamination=share,
        coin=coin,
        log_proba=-label_loss(slope * Z, labels, share, coin)[0],
    )


def behind(log_proba: Array, weights: Array) -> Array:
    """How many standard errors every rule (row) is behind the best one; zero for the best."""
    total = float(weights.sum())
    best = int((log_proba @ weights).argmax())
    gap = log_proba[best] - log_proba
    mean = gap @ weights / total
    error = np.sqrt(((gap - mean[:, None]) ** 2 @ weights) / total / total)
    return np.divide(mean, error, out=np.where(mean > 0.0, np.inf, 0.0), where=error > 1e-12)


def stacking_weights(log_proba: Array, weights: Array, n_steps: int = 300) -> Array:
    """Convex weights of the rules (rows) under which their mixed p(y | x) foretells held-out labels best.

    The held-out likelihood of the mixture is concave in the weights; EM climbs it from equal ones, and equal
    rules keep equal weights.
    """
    relative = np.exp(log_proba - log_proba.max(axis=0))
    out = np.full(len(log_proba), 1.0 / len(log_proba))
    for _ in range(n_steps):
        out = out * ((relative / (out @ relative)) @ weights) / weights.sum()
    return np.asarray(out / out.sum())


def looks_spherical(X: Array, labels: Labels, weights: Array) -> bool:
    """Whether features look independent and of one variance, as far as finite data can tell.

    tr C²/N over (tr C/N)² is near 1 + N/P for independent features of one variance, give or take 2/P. C is
    the covariance within labels, P the sum of weights; every so many rows are enough of many.
    """
    every = max(1, X.size // _MOST_CELLS)
    X, labels, weights = X[::every], labels[::every], weights[::every]
    total, n = float(weights.sum()), X.shape[1]
    of_label = np.zeros((len(labels), labels.max() + 1))
    of_label[np.arange(len(labels)), labels] = weights
    means = (of_label.T @ X) / np.maximum(of_label.sum(axis=0), 1e-300)[:, None]
    Z = (X - means[labels]) * np.sqrt(weights / total)[:, None]
    gram = Z @ Z.T if len(Z) < n else Z.T @ Z
    trace = float(np.trace(gram))
    if trace == 0.0:  # the examples of a label are all the same
        return False
    ratio = float((gram**2).sum()) * n / trace**2
    return ratio < _SPHERICAL + n / total
