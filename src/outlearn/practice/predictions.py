"""What every learner reaches on the effective ensemble, from the theory, with an interval.

The interval has two parts. What is not known of the ensemble goes through the theory at the sigma points of
the estimates. And at finite N a run scatters about the theory: with t = tan πΦ = |J⊥|/J∥, the N - 1 noise
coordinates make ln|J⊥|² fluctuate by 2/N, and the noise along B makes ln J∥ fluctuate by t²/N, so that

    Var ln t = (1/2 + t²)/N.                                                              (P1)

The fluctuation of the number of garbage examples is part of the first: the estimate follows the data at hand.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats
from scipy.special import expit, logit, ndtr

from outlearn.exceptions import ParameterError
from outlearn.model import Ensemble
from outlearn.practice.checking import Knowledge, overlap
from outlearn.practice.effective import EffectiveEnsemble
from outlearn.practice.estimate import LEVEL, Estimate
from outlearn.theory import EmpiricalRisk, HardSelection, Logistic, SoftSelection, Square, learning_curve
from outlearn.theory.mixture import Component

__all__ = ["LEARNERS", "Prediction", "World", "cosines", "predict_errors"]

Array = NDArray[np.float64]

LEARNERS: dict[str, str] = {
    "bayes": "Bayes: the posterior mean by message passing",
    "soft": "soft selection",
    "hard": "hard selection",
    "hebb": "Hebb's rule: the mean of the folded examples",
    "logistic": "logistic regression, C = 1, features scaled to unit noise",
    "lda": "LDA: linear discriminant analysis without shrinkage",
}

SELECTING = ("bayes", "soft", "hard")

_Z = float(stats.norm.ppf(0.5 + 0.5 * LEVEL))
_BLIND = 1e-3  # smallest cosine that tan πΦ is formed of


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """An ensemble as practice sees it: garbage, wrong labels, signal strength, number of features.

    ``balance`` is 4 π₊π₋ of the shares of the two labels. The midpoint between the classes has to be found,
    and its error, times π₊ - π₋, is noise on the centre as if from P balance/(1 - balance) examples. Those
    that select have it beside the noise of the informative examples, the others beside that of all.
    """

    contamination: float
    label_noise: float
    gamma: float
    n_features: int
    whitening_cost: float = 1.0
    balance: float = 1.0

    @classmethod
    def of(cls, ensemble: Ensemble, n_features: int) -> World:
        """The world of a paper's ensemble."""
        return cls(
            contamination=ensemble.outlier_fraction,
            label_noise=0.0,
            gamma=ensemble.gamma,
            n_features=n_features,
        )

    def test_error(self, cosine: ArrayLike) -> Any:
        """Error on fresh informative examples of a direction with this cosine."""
        return ndtr(-math.sqrt(self.gamma) * np.asarray(cosine, dtype=np.float64))


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """What the theory says of one learner.

    Attributes
    ----------
    learner, description : str
    direction_error : Estimate
        Angle to the truth over π.
    test_error : Estimate
        Share of wrong predictions on fresh informative examples.
    stable : bool
        Whether replica symmetry holds there: if not, the prediction is an approximation.
    note : str
    """

    learner: str
    description: str
    direction_error: Estimate
    test_error: Estimate
    stable: bool
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "learner": self.learner,
            "direction_error": self.direction_error.to_dict(),
            "test_error": self.test_error.to_dict(),
            "stable": self.stable,
            "note": self.note,
        }


def cosines(learner: str, world: World, alphas: ArrayLike) -> tuple[Array, NDArray[np.bool_]]:
    """Cosine between a learner's direction and the truth at many alpha, and where the theory is stable.

    Wrong labels are part of the equations for Hebb, Bayes, logistic and LDA. Soft and hard selection know
    two states: to them a wrong label counts as garbage, which it is worse than (their errors are bounds).

    >>> w = World(contamination=0.5, label_noise=0.0, gamma=10.0, n_features=100)
    >>> [round(float(cosines(name, w, [2.0])[0][0]), 4) for name in ("hebb", "soft", "bayes")]
    [0.9129, 0.9485, 0.9488]
    """
    alpha = np.atleast_1d(np.asarray(alphas, dtype=np.float64))
    right = 1.0 - world.contamination
    cost = math.sqrt(world.whitening_cost)
    sure = np.ones(alpha.size, dtype=bool)
    selected = right if learner in SELECTING else 1.0
    alpha = alpha / (1.0 + selected * (1.0 / world.balance - 1.0))
    if learner == "hebb":
        mean = right * (1.0 - 2.0 * world.label_noise)
        signal = mean * np.sqrt(alpha * world.gamma)
        return cost * signal / np.hypot(1.0, signal), sure
    if learner == "bayes":
        known = Knowledge(contamination=world.contamination, label_noise=world.label_noise)
        q = [overlap(known, alpha=float(a), gamma=world.gamma) for a in alpha]
        return cost * np.sqrt(q), sure
    if learner in ("soft", "hard"):
        garbage = 1.0 - right * (1.0 - world.label_noise)
        ensemble = Ensemble(eta=float(logit(min(garbage, 1.0 - 1e-9))), gamma=world.gamma)
        theory: Any = SoftSelection() if learner == "soft" else HardSelection()
    elif learner in ("logistic", "lda"):
        ensemble = Ensemble(eta=float(logit(world.contamination)), gamma=world.gamma)
        shares = (right * (1.0 - world.label_noise), world.contamination, right * world.label_noise)
        components = tuple(
            Component(weight=share, overlap=v, precision=world.gamma)
            for share, v in zip(shares, (1.0, 0.0, -1.0), strict=True)
        )
        if learner == "logistic":
            # C = 1 in units of the noise is 1/(γ N) where the centre has length one
            penalty = 1.0 / (world.gamma * world.n_features)
            theory = EmpiricalRisk(Logistic(), penalty, components=components)
        else:
            theory = EmpiricalRisk(Square(), 1e-7, components=components)
    else:
        raise ParameterError("learner", learner, f"one of {', '.join(LEARNERS)}")
    points = learning_curve(theory, ensemble, alpha)
    found = np.array([p.overlap if p.status.ok or p.residual < 1e-6 else np.nan for p in points])
    return cost * np.clip(found, 0.0, 1.0), np.array([p.stable for p in points])


def predict_errors(
    effective: EffectiveEnsemble, *, whitening_cost: float = 1.0, learners: tuple[str, ...] = tuple(LEARNERS)
) -> tuple[Prediction, ...]:
    """Predict the error of every learner on such data, with 90 % intervals; smallest error first."""
    n, alpha = effective.n_features, effective.alpha
    worlds = [
        World(
            contamination=c,
            label_noise=f,
            gamma=g,
            n_features=n,
            whitening_cost=whitening_cost,
            balance=effective.balance,
        )
        for c, f, g in effective.sigma_points()
    ]
    out = []
    for learner in learners:
        reached = [cosines(learner, world, alpha) for world in worlds]
        values = np.array([c[0] for c, _ in reached])
        if not math.isfinite(values[0]):
            continue
        values = np.where(np.isfinite(values), values, values[0])
        out.append(_prediction(learner, worlds, values, bool(reached[0][1][0]), n, effective))
    return tuple(sorted(out, key=lambda p: p.direction_error.value))


def spread_of(values: Array) -> float:
    """Variance of a function known at the sigma points (the estimate first, then pairs)."""
    half = 0.5 * (values[1::2] - values[2::2])
    return float(half @ half)


def finite_size_variance(log_tan: ArrayLike, n_features: int) -> Any:
    """Variance of ln tan πΦ at finite N (Eq. P1)."""
    return (0.5 + np.exp(np.minimum(2.0 * np.asarray(log_tan), 50.0))) / n_features


def log_tan(cosine: ArrayLike) -> Any:
    """Logarithm of tan πΦ, from the cosine."""
    c = np.clip(np.asarray(cosine, dtype=np.float64), _BLIND, 1.0 - 1e-12)
    return 0.5 * np.log1p(-c * c) - np.log(c)


def angle_of(log_tangent: ArrayLike) -> Any:
    """Direction error Φ, from ln tan πΦ."""
    return np.arctan(np.exp(np.asarray(log_tangent, dtype=np.float64))) / math.pi


def _prediction(
    learner: str, worlds: list[World], values: Array, stable: bool, n: int, effective: EffectiveEnsemble
) -> Prediction:
    tangents = log_tan(values)
    scatter = float(finite_size_variance(tangents[0], n))
    sd = math.sqrt(spread_of(tangents) + scatter)
    direction = Estimate(
        *(float(angle_of(tangents[0] + side * _Z * sd)) for side in (0.0, -1.0, 1.0)),
    )
    errors = logit(np.clip([w.test_error(c) for w, c in zip(worlds, values, strict=True)], 1e-12, 0.5))
    step = 0.01
    moved = worlds[0].test_error(np.cos(np.pi * angle_of(tangents[0] + step)))
    slope = (float(logit(np.clip(moved, 1e-12, 0.5))) - errors[0]) / step
    sd = math.sqrt(spread_of(errors) + slope**2 * scatter)
    test = Estimate(*(float(expit(errors[0] + side * _Z * sd)) for side in (0.0, -1.0, 1.0)))
    notes = []
    if not stable:
        notes.append("beyond replica symmetry: many solutions of similar energy, the theory is approximate")
    if learner in ("soft", "hard") and effective.label_noise.value > 0.01:
        notes.append("counts wrong labels as garbage")
    if learner == "lda" and effective.alpha <= 1.0:
        notes.append("fewer examples than features: the minimum-norm solution")
    return Prediction(
        learner=learner,
        description=LEARNERS[learner],
        direction_error=direction,
        test_error=Estimate(test.value, test.low, min(test.high, 0.5)),
        stable=stable,
        note="; ".join(notes),
    )
