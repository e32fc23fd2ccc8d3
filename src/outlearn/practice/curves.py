"""Learning curves with a band, and where they meet a target.

The band joins what is not known of the ensemble, pushed through the theory at the sigma points; the scatter
of a finite system (Eq. P1); and the number of garbage examples, which differs from draw to draw: of P
examples a share sin²φ with

    Var φ = 1/(4P)                                                                         (P2)

around the expected one. Data at hand have one such number, and their estimates follow it; data that are still
to be collected may have any.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.special import expit, logit

from outlearn.practice.estimate import LEVEL
from outlearn.practice.predictions import World, angle_of, cosines, finite_size_variance, log_tan

__all__ = ["Curve", "Kind", "Need", "error_at", "learning_curve", "need_of"]

Array = NDArray[np.float64]
Kind = Literal["test", "direction"]

_Z = float(stats.norm.ppf(0.5 + 0.5 * LEVEL))
_COARSE = 5  # every how many points the curves of the band are solved
_NUDGE = 0.05  # of φ, for the derivative over the share of garbage


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Curve:
    """Error of one learner against the number of examples, with a 90 % band."""

    learner: str
    n_samples: Array
    error: Array
    low: Array
    high: Array

    def to_dict(self) -> dict[str, Any]:
        """Return plain lists."""
        return {
            "learner": self.learner,
            **{name: getattr(self, name).tolist() for name in ("n_samples", "error", "low", "high")},
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """Examples that one learner needs for the target.

    Attributes
    ----------
    n_samples : int or None
        Where the learning curve meets the target; None if it does not.
    low, high : int or None
        Where the two edges of its band do. With ``high`` examples, the target is met in 95 % of the cases.
    reason : str
        Why not, if not.
    """

    learner: str
    n_samples: int | None
    low: int | None
    high: int | None
    reason: str = ""

    @property
    def reachable(self) -> bool:
        """Whether the target can be met."""
        return self.n_samples is not None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        names = ("learner", "n_samples", "low", "high", "reachable", "reason")
        return {name: getattr(self, name) for name in names}


def error_at(world: World, kind: str, cosine: Any) -> Any:
    """The error of a direction with this cosine, of the kind asked for."""
    return world.test_error(cosine) if kind == "test" else np.arccos(np.clip(cosine, -1.0, 1.0)) / np.pi


def learning_curve(learner: str, worlds: Sequence[World], grid: Array, kind: Kind) -> Curve:
    """A learner's error on the first world, at numbers of examples; the others are sigma points around it.

    >>> from outlearn.model import Ensemble
    >>> world = World.of(Ensemble.from_contamination(0.9, gamma=10.0), n_features=100)
    >>> c = learning_curve("hebb", [world], np.array([1000.0]), "direction")
    >>> [round(float(e[0]), 3) for e in (c.low, c.error, c.high)]
    [0.212, 0.25, 0.293]
    """
    n, phi = worlds[0].n_features, math.asin(math.sqrt(worlds[0].contamination))
    more, less = (math.sin(phi + side * _NUDGE) ** 2 for side in (1.0, -1.0))
    worlds = [*worlds, *(replace(worlds[0], contamination=share) for share in (more, less))]
    values = np.stack([_smooth_cosines(learner, w, grid, _COARSE if k else 1) for k, w in enumerate(worlds)])
    values = np.where(np.isfinite(values), values, values[0])
    tangent = log_tan(values[0])
    step = 1e-3
    moved = np.cos(np.pi * angle_of(tangent + step))
    errors = np.stack([_logit(error_at(w, kind, c)) for w, c in zip(worlds, values, strict=True)])
    here = np.cos(np.pi * angle_of(tangent))
    slope = (_logit(error_at(worlds[0], kind, moved)) - _logit(error_at(worlds[0], kind, here))) / step
    half = 0.5 * (errors[1::2] - errors[2::2])
    drawn = half[-1] ** 2 / (4.0 * _NUDGE**2 * grid)  # Eq. P2
    sd = np.sqrt((half[:-1] ** 2).sum(axis=0) + slope**2 * finite_size_variance(tangent, n) + drawn)
    return Curve(
        learner=learner,
        n_samples=grid,
        error=expit(errors[0]),
        low=expit(errors[0] - _Z * sd),
        high=np.minimum(expit(errors[0] + _Z * sd), 0.5),
    )


def _smooth_cosines(learner: str, world: World, grid: Array, every: int) -> Array:
    """Cosines along the grid; ``every`` > 1 solves a part: ln tan πΦ is smooth in ln P."""
    alphas = grid / world.n_features
    if every == 1:
        return cosines(learner, world, alphas)[0]
    some = np.unique(np.append(np.arange(0, grid.size, every), grid.size - 1))
    tangents = log_tan(cosines(learner, world, alphas[some])[0])
    return np.cos(np.pi * angle_of(np.interp(np.log(grid), np.log(grid[some]), tangents)))


def need_of(curve: Curve, target: float, floor: float, max_samples: int | None) -> Need:
    """Where a learning curve meets a target, or why it does not."""
    meets = [_meeting(curve.n_samples, edge, target) for edge in (curve.error, curve.low, curve.high)]
    reason = ""
    if meets[0] is None:
        if target <= floor * (1.0 + 1e-9):
            reason = f"even with unlimited examples the classes overlap by {floor:.3g}"
        elif max_samples is not None:
            at = float(curve.error[-1])
            reason = f"with {max_samples} examples the error is still {at:.3g}"
        else:
            reason = f"more than {curve.n_samples[-1]:.3g} examples would be needed"
    return Need(learner=curve.learner, n_samples=meets[0], low=meets[1], high=meets[2], reason=reason)


def _meeting(n: Array, error: Array, target: float) -> int | None:
    """The first number of examples from which on the error stays at or below the target."""
    above = np.flatnonzero(~(error <= target))
    if above.size == 0:
        return math.ceil(n[0])
    k = int(above[-1])
    if k == len(n) - 1:
        return None
    x, y = np.log(n[k : k + 2]), _logit(error[k : k + 2])
    if not math.isfinite(y[0]) or y[0] == y[1]:
        return math.ceil(n[k + 1])
    return math.ceil(math.exp(x[0] + (x[1] - x[0]) * (y[0] - _logit(target)) / (y[0] - y[1])))


def _logit(error: Any) -> Any:
    return logit(np.clip(error, 1e-12, 1.0 - 1e-12))
