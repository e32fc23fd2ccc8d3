"""Compare linear rules by held-out labels, and pool those that cannot be told apart.

Every rule gives scores; what they say of the observed labels is brought to one form,

    p(y | x) = (1 - ε) softmax_y(a·score + b) + ε q_y   with a > 0,

so that rules are compared by their direction, not by how well they know their own certainty. The labels
of outliers are fair coins, q_y = 1/K, or as unequal as all labels are: whichever foretells better. The
shift b of the thresholds is kept as far as the labels speak for it. Weights are those of Bayesian model
averaging, averaged over halves of the held-out labels.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize
from scipy.special import expit, softmax

from outlearn.inference.robust_logistic import label_loss

__all__ = ["Calibration", "behind", "calibrate", "looks_spherical", "steady_weights"]

Array = NDArray[np.float64]
Labels = NDArray[np.intp]

_STARTS = (-6.0, 0.0, 2.0)  # log odds of the contamination
_WIDEST = 12.0  # slopes and contaminations beyond say the same
_FAIR = 0.01  # classes whose frequencies differ by less are equally frequent
_SPHERICAL = 1.5
_MOST_CELLS = 400_000
_MOST_PARTS = 6  # folds that are told apart; they have 20 halves
_PRIOR = 0.02  # a hair, on ln a and on the log odds of ε: keeps what the labels leave open from running away


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Calibration:
    """How a rule's scores turn into p(y | x) on the contaminated stream."""

    slope: float
    offset: Array
    """b, one per column of the scores: what the labels add to the rule's own thresholds."""
    contamination: float
    coin: Array
    """(K,): q, how often the label of an outlier shows every class."""
    log_proba: Array
    """(P,): ln p of the observed label of every example used."""


def calibrate(scores: Array, labels: Labels, weights: Array, *, shift: bool = True) -> Calibration:
    """Fit slope, offset and contamination to observed labels by penalised maximum likelihood.

    ``scores`` are (P, 1) log odds of the second of two classes, or (P, K). A threshold set by noisy labels
    can be worse than the rule's own: with twice the gain in log likelihood z², the offset is shrunk by
    1 - 2(K - 1)/z² (Akaike's price of a parameter), to nothing below. ``shift=False`` leaves it out.
    """
    columns = scores.shape[1]
    k = max(2, columns)
    total = float(weights.sum())
    spread = max(float(np.sqrt(weights @ (scores**2).mean(axis=1) / total)), 1e-300)
    Z = scores / spread

    def objective(v: Array, coin: Array) -> tuple[float, Array]:
        slope, share = np.exp(v[0]), float(expit(v[1]))
        moved = v[2:] if len(v) > 2 else 0.0
        loss, slopes = label_loss(slope * Z + moved, labels, share, coin)
        by_slope = slope * float(weights @ (slopes * Z).sum(axis=1)) / total
        # by the log odds of the share: the share now, minus the posterior probability that a label is a coin
        by_share = share - float(weights @ (share * coin[labels] * np.exp(loss))) / total
        value = float(weights @ loss) / total + _PRIOR / total * float(v @ v)
        gradient = np.array([by_slope, by_share, *(weights @ slopes / total)[: len(v) - 2]])
        return value, gradient + 2.0 * _PRIOR / total * v

    frequencies = np.bincount(labels, weights, k) / total
    coins = [np.full(k, 1.0 / k)]
    if np.abs(frequencies - 1.0 / k).max() > _FAIR:
        coins.append(frequencies)

    def climb(starts: list[Array]) -> tuple[Any, Array]:
        runs = [
            (
                optimize.minimize(
                    objective,
                    start,
                    args=(coin,),
                    jac=True,
                    method="L-BFGS-B",
                    bounds=[(-_WIDEST, _WIDEST)] * len(start),
                    options={"maxiter": 300, "gtol": 1e-10, "ftol": 1e-15},
                ),
                coin,
            )
            for coin in coins
            for start in starts
        ]
        return min(runs, key=lambda run: float(run[0].fun))

    found, coin = climb([np.array([0.0, start]) for start in _STARTS])
    offset = np.zeros(columns)
    if shift:
        level = np.zeros(columns)
        shifted, other = climb([np.array([*found.x, *level]), np.array([0.0, _STARTS[0], *level])])
        gain = 2.0 * total * float(found.fun - shifted.fun)
        price = 2.0 * (k - 1)
        if gain > price:
            found, coin = shifted, other
            offset = (1.0 - price / gain) * shifted.x[2:]
    slope, share = float(np.exp(found.x[0])), float(expit(found.x[1]))
    return Calibration(
        slope=slope / spread,
        offset=offset,
        contamination=share,
        coin=coin,
        log_proba=-label_loss(slope * Z + offset, labels, share, coin)[0],
    )


def behind(log_proba: Array, weights: Array) -> Array:
    """How many standard errors every rule (row) is behind the best one; zero for the best."""
    total = float(weights.sum())
    best = int((log_proba @ weights).argmax())
    gap = log_proba[best] - log_proba
    mean = gap @ weights / total
    error = np.sqrt(((gap - mean[:, None]) ** 2 @ weights) / total / total)
    return np.divide(mean, error, out=np.where(mean > 0.0, np.inf, 0.0), where=error > 1e-12)


def steady_weights(log_proba: Array, weights: Array, fold: Labels) -> Array:
    """Shares of the rules (rows): their posterior probabilities, averaged over all halves of the folds.

    The likelihood of held-out labels alone would choose one rule as soon as there are many labels, by
    chance too where two are equally good. Its ups and downs from half to half are those of another sample
    of labels: a rule ahead in every half gets all, rules that take turns share.
    """
    fold = fold % _MOST_PARTS
    k = int(fold.max()) + 1
    by_fold = np.stack([log_proba[:, fold == f] @ weights[fold == f] for f in range(k)])
    halves = [list(half) for size in sorted({k // 2, (k + 1) // 2}) for half in combinations(range(k), size)]
    sums = np.stack([by_fold[half].sum(axis=0) for half in halves])
    return np.asarray(softmax(sums, axis=1).mean(axis=0))


def looks_spherical(X: Array, labels: Labels, weights: Array) -> bool:
    """Whether features look independent and of one variance, as far as finite data can tell.

    tr C²/N over (tr C/N)² is near 1 + N/f for independent features of one variance, give or take 2/f. C is
    the covariance within labels, f its degrees of freedom; every so many rows are enough of many.
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
    freedom = total - np.count_nonzero(of_label.sum(axis=0))
    return bool(freedom > 0.0 and ratio < _SPHERICAL + n / freedom)
