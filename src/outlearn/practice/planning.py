"""How many examples a target error needs, and what checking labels by hand is worth instead."""

from __future__ import annotations

import html
import math
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from outlearn.exceptions import ParameterError
from outlearn.model import Ensemble
from outlearn.practice.checking import Knowledge, alpha_for, overlap
from outlearn.practice.curves import Curve, Kind, Need, error_at, learning_curve, need_of
from outlearn.practice.diagnosis import Diagnosis
from outlearn.practice.predictions import LEARNERS, World

__all__ = ["Checking", "Plan", "check_goal", "plan"]

_POINTS = 31
_ALPHAS = (0.03, 3000.0)  # the range of a plan without max_samples
_SHARES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
_SHOWN = 50  # examples named for checking


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
    floor = float(error_at(world, kind, math.sqrt(world.whitening_cost)))
    last = _ALPHAS[1] * n if max_samples is None else float(max_samples)
    first = min(_ALPHAS[0] * n, 0.5 * last, math.inf if n_now is None else 0.5 * n_now)
    grid = np.geomspace(max(first, 2.0), last, _POINTS)
    curves = tuple(learning_curve(name, worlds, grid, kind) for name in learners)
    needs = tuple(
        sorted(
            (need_of(curve, target_error, floor, max_samples) for curve in curves),
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
                balance=e.balance,
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
                error_random=float(error_at(world, kind, math.sqrt(random))),
                error_doubtful=float(error_at(world, kind, math.sqrt(doubtful))),
                worth_random=worth(random),
                worth_doubtful=worth(doubtful),
            )
        )
    now = float(error_at(world, kind, math.sqrt(reach(0.0, "random"))))
    needed: int | None = 0 if now <= target else None
    if needed is None and rows[-1].error_doubtful <= target:
        low, high = 0.0, 1.0
        for _ in range(12):
            middle = 0.5 * (low + high)
            error = float(error_at(world, kind, math.sqrt(reach(middle, "doubtful"))))
            low, high = (low, middle) if error <= target else (middle, high)
        needed = math.ceil(high * p)
    return tuple(rows), needed, now


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
