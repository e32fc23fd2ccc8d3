"""How many examples a target error needs, and what checking labels by hand is worth instead."""

from __future__ import annotations

import html
import math
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.special import expit, logit

from outlearn.exceptions import ParameterError
from outlearn.model import Ensemble
from outlearn.practice.checking import Knowledge, alpha_for, overlap
from outlearn.practice.diagnosis import Diagnosis
from outlearn.practice.estimate import LEVEL
from outlearn.practice.predictions import (
    LEARNERS,
    World,
    angle_of,
    cosines,
    finite_size_variance,
    log_tan,
)

__all__ = ["Checking", "Curve", "Need", "Plan", "check_goal", "plan"]

Array = NDArray[np.float64]
Kind = Literal["test", "direction"]

_Z = float(stats.norm.ppf(0.5 + 0.5 * LEVEL))
_POINTS = 31
_COARSE = 5  # every how many points the curves of the band are solved
_ALPHAS = (0.03, 3000.0)  # the range of a plan without max_samples
_SHARES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
_SHOWN = 50  # examples named for checking


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Checking:
    """What checking a number of labels by hand buys the Bayes learner.

    ``error_random`` and ``error_doubtful`` are its errors when the checked examples are drawn at random and
    when they are the most doubtful ones; ``worth_random`` and ``worth_doubtful`` the unchecked examples that
    would have to be collected for the same.
    """

    n_checked: int
    share: float
    error_random: float
    error_doubtful: float
    worth_random: int
    worth_doubtful: int

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Plan:
    """What to do to reach a target error.

    Attributes
    ----------
    target_error : float
    kind : {"test", "direction"}
        Share of wrong predictions on fresh informative examples, or angle to the truth over π.
    needs : tuple of Need
        The learners by the number of examples that they need, those that cannot reach it last.
    curves : tuple of Curve
    checking : tuple of Checking
        Empty if the number of examples at hand is not known.
    checks_needed : int or None
        Labels to check, most doubtful first, that reach the target without a new example.
    check_first : array of int
        Rows of the data whose labels to check first (from a diagnosis).
    floor : float
        Error that no number of examples goes below.
    n_now : int or None
    error_now : float or None
        Of the Bayes learner, at the examples at hand.
    """

    target_error: float
    kind: str
    needs: tuple[Need, ...]
    curves: tuple[Curve, ...]
    checking: tuple[Checking, ...]
    checks_needed: int | None
    check_first: NDArray[np.intp]
    floor: float
    n_now: int | None
    error_now: float | None
    n_features: int
    max_samples: int | None
    world: World

    @property
    def reachable(self) -> bool:
        """Whether any learner meets the target."""
        return any(need.reachable for need in self.needs)

    def need(self, learner: str) -> Need:
        """What one learner needs."""
        for found in self.needs:
            if found.learner == learner:
                return found
        raise ParameterError("learner", learner, f"one of {', '.join(n.learner for n in self.needs)}")

    def curve(self, learner: str) -> Curve:
        """The learning curve of one learner."""
        for found in self.curves:
            if found.learner == learner:
                return found
        raise ParameterError("learner", learner, f"one of {', '.join(c.learner for c in self.curves)}")

    @property
    def verdict(self) -> str:
        """The plan in two or three sentences."""
        what = "test error" if self.kind == "test" else "direction error"
        goal = f"a {what} of {self.target_error:.3g}"
        best = self.needs[0]
        if best.n_samples is None:
            return f"Not reachable: {goal}. {best.reason[:1].upper()}{best.reason[1:]}."
        if self.n_now is not None and best.n_samples <= self.n_now:
            return f"{_capital(best.learner)} reaches {goal} with the {self.n_now} examples at hand."
        text = f"{_capital(best.learner)} needs {best.n_samples} examples for {goal}"
        if best.high is not None:
            text += f"; with {best.high} it is safe (95 %)"
        if self.n_now is not None:
            text += f". There are {self.n_now} now"
            if self.checks_needed is not None:
                text += f"; checking the {self.checks_needed} most doubtful labels by hand would do as well"
        return text + "."

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "verdict": self.verdict,
            "target_error": self.target_error,
            "kind": self.kind,
            "reachable": self.reachable,
            "floor": self.floor,
            "n_now": self.n_now,
            "error_now": self.error_now,
            "n_features": self.n_features,
            "max_samples": self.max_samples,
            "needs": [need.to_dict() for need in self.needs],
            "checks_needed": self.checks_needed,
            "checking": [row.to_dict() for row in self.checking],
            "check_first": self.check_first.tolist(),
            "curves": [curve.to_dict() for curve in self.curves],
        }

    def to_frame(self) -> Any:
        """Return the learning curves as one long table."""
        import pandas as pd

        columns = ("n_samples", "error", "low", "high")
        return pd.concat(
            [
                pd.DataFrame({"learner": c.learner, **{k: getattr(c, k) for k in columns}})
                for c in self.curves
            ],
            ignore_index=True,
        )

    def __repr__(self) -> str:
        lines = [f"Plan for a {self.kind} error of {self.target_error:.3g}", f"  {self.verdict}"]
        for need in self.needs:
            if need.n_samples is None:
                lines.append(f"  {need.learner:9s} not reachable: {need.reason}")
            else:
                low = "?" if need.low is None else need.low
                high = "?" if need.high is None else need.high
                lines.append(f"  {need.learner:9s} {need.n_samples} examples ({low} to {high})")
        if self.checking:
            lines.append(
                "  checked by hand: error (worth so many new examples), at random; most doubtful first"
            )
            for c in self.checking:
                lines.append(
                    f"  {c.n_checked:9d} {c.error_random:.4f} ({c.worth_random}); "
                    f"{c.error_doubtful:.4f} ({c.worth_doubtful})"
                )
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(repr(self))}</pre>"


def check_goal(target_error: float, kind: str = "test", max_samples: int | None = None) -> None:
    """Refuse a goal that makes no sense, before anything is computed for it.

    >>> check_goal(0.7)
    Traceback (most recent call last):
    ...
    outlearn.exceptions.ParameterError: target_error = 0.7 is not permitted: a number in (0, 1/2)
    """
    if isinstance(target_error, bool | str) or not 0.0 < target_error < 0.5:
        raise ParameterError("target_error", target_error, "a number in (0, 1/2)")
    if kind not in get_args(Kind):
        raise ParameterError("kind", kind, "'test' or 'direction'")
    if max_samples is not None:
        _count("max_samples", max_samples)


def plan(
    source: Diagnosis | Ensemble,
    *,
    target_error: float,
    max_samples: int | None = None,
    kind: Kind = "test",
    n_features: int | None = None,
    n_samples: int | None = None,
    learners: tuple[str, ...] = tuple(LEARNERS),
) -> Plan:
    """Say how many examples a target error needs, and what checking labels by hand would buy instead.

    Parameters
    ----------
    source : Diagnosis or Ensemble
        What the data are like. A diagnosis brings its uncertainty into the band of the curves.
    target_error : float
        In (0, 1/2).
    max_samples : int, optional
        The most that could be collected.
    kind : {"test", "direction"}
        Which error: on fresh informative examples, or the angle to the truth over π.
    n_features, n_samples : int, optional
        For an ensemble: its dimension (needed) and the examples at hand.

    Examples
    --------
    >>> from outlearn.model import Ensemble
    >>> world = Ensemble.from_contamination(0.8, gamma=10.0)
    >>> p = plan(world, target_error=0.05, n_features=100, kind="direction")
    >>> p.need("bayes").n_samples < p.need("hebb").n_samples < p.need("logistic").n_samples
    True
    >>> plan(Ensemble.from_contamination(0.8, gamma=2.0), target_error=0.05, n_features=100).verdict
    'Not reachable: a test error of 0.05. Even with unlimited examples the classes overlap by 0.0786.'
    """
    check_goal(target_error, kind, max_samples)
    max_samples = None if max_samples is None else int(max_samples)
    worlds, n, n_now, check_first = _worlds(source, n_features, n_samples)
    for name in learners:
        if name not in LEARNERS:
            raise ParameterError("learners", name, f"any of {', '.join(LEARNERS)}")
    world = worlds[0]
    floor = float(_error(world, kind, math.sqrt(world.whitening_cost)))
    last = _ALPHAS[1] * n if max_samples is None else float(max_samples)
    first = min(_ALPHAS[0] * n, 0.5 * last, math.inf if n_now is None else 0.5 * n_now)
    grid = np.geomspace(max(first, 2.0), last, _POINTS)
    curves = tuple(_curve(name, worlds, n, grid, kind) for name in learners)
    needs = tuple(
        sorted(
            (_need(curve, target_error, floor, kind, max_samples) for curve in curves),
            key=lambda need: (need.n_samples is None, need.n_samples or 0),
        )
    )
    checking: tuple[Checking, ...] = ()
    checks_needed, error_now = None, None
    if n_now is not None:
        checking, checks_needed, error_now = _check_by_hand(world, n_now, n, kind, target_error)
    return Plan(
        target_error=float(target_error),
        kind=kind,
        needs=needs,
        curves=curves,
        checking=checking,
        checks_needed=checks_needed,
        check_first=check_first,
        floor=floor,
        n_now=n_now,
        error_now=error_now,
        n_features=n,
        max_samples=max_samples,
        world=world,
    )


def _worlds(
    source: Any, n_features: int | None, n_samples: int | None
) -> tuple[list[World], int, int | None, NDArray[np.intp]]:
    nothing = np.zeros(0, dtype=np.intp)
    if isinstance(source, Diagnosis):
        if n_features is not None or n_samples is not None:
            raise ParameterError("n_features", n_features, "left out: the diagnosis knows its data")
        if not source.detected:
            raise ParameterError(
                "source", "a diagnosis without a signal", "a diagnosis that found a signal, or an Ensemble"
            )
        e = source.effective
        worlds = [
            World(
                contamination=c,
                label_noise=f,
                gamma=g,
                n_features=e.n_features,
                whitening_cost=1.0,  # with more examples the covariance is better known, too
            )
            for c, f, g in e.sigma_points()
        ]
        rows = source.verdicts.index[source.verdicts.most_doubtful(_SHOWN)]
        return worlds, e.n_features, e.n_samples, rows
    if isinstance(source, Ensemble):
        if n_features is None:
            raise ParameterError("n_features", None, "given, for an Ensemble")
        n = _count("n_features", n_features)
        now = None if n_samples is None else _count("n_samples", n_samples)
        return [World.of(source, n)], n, now, nothing
    raise ParameterError("source", type(source).__name__, "a Diagnosis or an Ensemble")


def _error(world: World, kind: str, cosine: Any) -> Any:
    return world.test_error(cosine) if kind == "test" else np.arccos(np.clip(cosine, -1.0, 1.0)) / np.pi


def _curve(learner: str, worlds: list[World], n: int, grid: Array, kind: str) -> Curve:
    """A learning curve; the band joins the sigma points of the estimates and the scatter at finite N."""
    values = np.stack(
        [_smooth_cosines(learner, w, n, grid, _COARSE if k else 1) for k, w in enumerate(worlds)]
    )
    values = np.where(np.isfinite(values), values, values[0])
    tangent = log_tan(values[0])
    step = 1e-3
    moved = np.cos(np.pi * angle_of(tangent + step))
    errors = np.stack([_logit(_error(w, kind, c)) for w, c in zip(worlds, values, strict=True)])
    here = np.cos(np.pi * angle_of(tangent))
    slope = (_logit(_error(worlds[0], kind, moved)) - _logit(_error(worlds[0], kind, here))) / step
    variance = slope**2 * finite_size_variance(tangent, n)
    if len(worlds) > 1:
        half = 0.5 * (errors[1::2] - errors[2::2])
        variance = variance + (half**2).sum(axis=0)
    sd = np.sqrt(variance)
    return Curve(
        learner=learner,
        n_samples=grid,
        error=expit(errors[0]),
        low=expit(errors[0] - _Z * sd),
        high=np.minimum(expit(errors[0] + _Z * sd), 0.5),
    )


def _smooth_cosines(learner: str, world: World, n: int, grid: Array, every: int) -> Array:
    """Cosines along the grid; ``every`` > 1 solves a part: ln tan πΦ is smooth in ln P."""
    if every == 1:
        return cosines(learner, world, grid / n)[0]
    some = np.unique(np.append(np.arange(0, grid.size, every), grid.size - 1))
    tangents = log_tan(cosines(learner, world, grid[some] / n)[0])
    return np.cos(np.pi * angle_of(np.interp(np.log(grid), np.log(grid[some]), tangents)))


def _need(curve: Curve, target: float, floor: float, kind: str, max_samples: int | None) -> Need:
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


def _check_by_hand(
    world: World, p: int, n: int, kind: str, target: float
) -> tuple[tuple[Checking, ...], int | None, float]:
    known = Knowledge(contamination=world.contamination, label_noise=world.label_noise)
    alpha = p / n

    def reach(share: float, order: Any) -> float:
        return overlap(known, alpha=alpha, gamma=world.gamma, checked=share, order=order)

    def worth(q: float) -> int:
        return max(round((alpha_for(known, q, world.gamma) - alpha) * n), 0)

    rows = []
    for share in _SHARES:
        checked = max(round(share * p), 1)
        random, doubtful = reach(checked / p, "random"), reach(checked / p, "doubtful")
        rows.append(
            Checking(
                n_checked=checked,
                share=checked / p,
                error_random=float(_error(world, kind, math.sqrt(random))),
                error_doubtful=float(_error(world, kind, math.sqrt(doubtful))),
                worth_random=worth(random),
                worth_doubtful=worth(doubtful),
            )
        )
    now = float(_error(world, kind, math.sqrt(reach(0.0, "random"))))
    needed: int | None = 0 if now <= target else None
    if needed is None and rows[-1].error_doubtful <= target:
        low, high = 0.0, 1.0
        for _ in range(12):
            middle = 0.5 * (low + high)
            error = float(_error(world, kind, math.sqrt(reach(middle, "doubtful"))))
            low, high = (low, middle) if error <= target else (middle, high)
        needed = math.ceil(high * p)
    return tuple(rows), needed, now


def _logit(error: Any) -> Any:
    return logit(np.clip(error, 1e-12, 1.0 - 1e-12))


def _capital(learner: str) -> str:
    names = {
        "bayes": "The Bayes learner",
        "soft": "Soft selection",
        "hard": "Hard selection",
        "hebb": "Hebb's rule",
        "logistic": "Logistic regression",
        "lda": "LDA",
    }
    return names[learner]


def _count(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise ParameterError(name, value, "a whole number >= 1")
    return int(value)
