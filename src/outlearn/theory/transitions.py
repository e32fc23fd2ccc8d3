"""First-order transitions with both their spinodals."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from outlearn.model import Ensemble
from outlearn.model.checks import choice, is_positive, numbers, positive
from outlearn.numerics import Status
from outlearn.theory.crossings import Crossing, crossings
from outlearn.theory.paths import (
    LOGARITHMIC,
    OVER,
    Fold,
    Over,
    Stretch,
    from_axis,
    stretches,
    to_axis,
)
from outlearn.theory.results import SaddlePoint
from outlearn.theory.search import polish
from outlearn.theory.solve import _explicit, make_results
from outlearn.theory.system import Learner, Points, system_of

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Transition", "transitions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    """A first-order point: two branches of equal free energy, and the interval where both exist.

    Attributes
    ----------
    over : str
        The parameter that is varied; ``value`` is where the free energies are equal.
    below, above : SaddlePoint
        Equilibrium just below and just above ``value``, both solved at ``value``.
    lower_spinodal, upper_spinodal : float or None
        Where the branch above ceases to exist going down, and the branch below going up: folds solved from
        residual = 0 and a singular Jacobian. None if the branch reaches the end of the interval.
    error, lower_spinodal_error, upper_spinodal_error : float
        Change that doubled quadrature resolution makes, plus rounding.
    energy_gap : float
        What is left of f_below - f_above.
    """

    learner: Learner
    alpha: float
    ensemble: Ensemble
    over: str
    value: float
    error: float
    below: SaddlePoint
    above: SaddlePoint
    lower_spinodal: float | None
    upper_spinodal: float | None
    lower_spinodal_error: float
    upper_spinodal_error: float
    spinodal_residual: float
    energy_gap: float
    status: Status

    def to_dict(self) -> dict[str, Any]:
        """Return a flat mapping; order parameters of both sides with suffix."""
        sides = {
            f"{name}_{side}": getattr(getattr(self, side), name)
            for side in ("below", "above")
            for name in ("branch", "R", "Q", "angle", "free_energy", "at_eigenvalue")
        }
        skip = ("learner", "ensemble", "below", "above", "status")
        own = {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.name not in skip}
        return {"learner": repr(self.learner), **own, **sides, "status": self.status.name}

    def to_frame(self) -> pd.DataFrame:
        """Return a table of one row."""
        import pandas as pd

        return pd.DataFrame([self.to_dict()])

    def __repr__(self) -> str:
        low = "-" if self.lower_spinodal is None else f"{self.lower_spinodal:.7g}"
        high = "-" if self.upper_spinodal is None else f"{self.upper_spinodal:.7g}"
        return (
            f"Transition({self.learner!r}, {self.over}={self.value:.10g} ± {self.error:.1g}, "
            f"spinodals {low} .. {high}, Phi {self.below.angle:.5g} -> {self.above.angle:.5g}, "
            f"{self.status.name})"
        )


def transitions(
    learner: Learner,
    ensemble: Ensemble,
    alpha: float = float("nan"),
    *,
    over: Over = "eta",
    between: tuple[float, float],
    progress: Callable[[float], None] | None = None,
) -> tuple[Transition, ...]:
    """Find every first-order transition in an interval of one parameter, in ascending order.

    The parameter is "eta", "alpha" or "gamma" (a matched learner stays matched), or the learner's belief
    alone: "eta_tilde" or "gamma_tilde".

    All branches over the interval are followed through their folds; the lower envelope of their free energies
    tells where the equilibrium changes. The parameter that is varied may keep any value in ``ensemble``
    (or ``alpha`` be left out).

    >>> from outlearn import theory
    >>> first, second = transitions(
    ...     theory.SoftSelection(), Ensemble(eta=0.0, gamma=10.0), alpha=20, over="eta", between=(0, 12))
    >>> round(first.value, 6), round(first.lower_spinodal, 6), round(first.upper_spinodal, 6)
    (3.920583, 3.769131, 3.992206)
    """
    choice("over", over, OVER)
    accepts = is_positive if over in LOGARITHMIC else np.isfinite
    permitted = f"two increasing finite values{' > 0' if over in LOGARITHMIC else ''}"
    span = numbers("between", between, permitted, lambda x: x.size == 2 and accepts(x).all() and x[0] < x[1])
    system = system_of(learner)
    rows = Points.of(ensemble, span[0] if over == "alpha" else positive("alpha", alpha))
    ends = to_axis(over, span)
    interval = (float(ends[0]), float(ends[1]))
    found = stretches(system, rows, over, interval, progress=progress)
    return tuple(_transition(learner, rows, over, c) for c in crossings(system, rows, over, found, interval))


def _transition(learner: Learner, rows: Points, over: str, c: Crossing) -> Transition:
    at = rows.take([c.row]).shifted(over, from_axis(over, np.array([c.t])))
    low, high = c.above.low_fold, c.below.high_fold
    scale = _scale(over, c.t)
    return Transition(
        learner=learner,
        alpha=float(at.alpha[0]),
        ensemble=at.ensemble(0),
        over=over,
        value=float(from_axis(over, np.array(c.t))),
        error=c.error * scale,
        below=_side(learner, at, c.below, c.t, c.above),
        above=_side(learner, at, c.above, c.t, c.below),
        lower_spinodal=None if low is None else float(from_axis(over, np.array(low.t))),
        upper_spinodal=None if high is None else float(from_axis(over, np.array(high.t))),
        lower_spinodal_error=_fold_error(low, over),
        upper_spinodal_error=_fold_error(high, over),
        spinodal_residual=max((f.residual for f in (low, high) if f is not None), default=0.0),
        energy_gap=c.gap,
        status=c.status,
    )


def _fold_error(fold: Fold | None, over: str) -> float:
    if fold is None:
        return 0.0
    return fold.error * _scale(over, fold.t)


def _scale(over: str, t: float) -> float:
    """d value / d t."""
    return float(np.exp(t)) if over in LOGARITHMIC else 1.0


def _side(learner: Learner, at: Points, mine: Stretch, t: float, other: Stretch) -> SaddlePoint:
    """One of the two branches at the transition, named by its overlap with the truth."""
    if mine.explicit is not None:
        return next(s for s in _explicit(learner, at) if s.branch == mine.explicit)
    v, residual, _ = polish(learner.system(), at, mine.guess(t)[None], np.zeros(1, dtype=np.int64))
    (point,) = make_results(learner, at, v, residual, [1])
    theirs = -np.inf if other.explicit is not None else float(other.guess(t)[0])
    return dataclasses.replace(point, branch="informative" if v[0, 0] > theirs else "uninformative")
