"""Solve for one branch, list all branches, walk a list of alphas: the search, made into results."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from outlearn.exceptions import ConvergenceError
from outlearn.model import Ensemble
from outlearn.model.checks import choice, flag, is_positive, numbers, positive
from outlearn.numerics import Status
from outlearn.theory.results import SaddlePoint
from outlearn.theory.search import TOLERANCE, Found, search
from outlearn.theory.system import Learner, Points, system_of

__all__ = ["Branch", "Branches", "branches", "describe", "learning_curve", "make_results", "solve"]

Branch = Literal["equilibrium", "informative", "uninformative"]

_QUADRATURE_TOLERANCE = 1e-8
_KNOWN = ("R", "Q", "q", "z", "Q_hat")


class Branches(tuple[SaddlePoint, ...]):
    """All solutions of one point, sorted by free energy.

    ``complete`` tells whether their signed count is right: the sum over solutions of the sign of the Jacobian
    determinant is one for every parameter value, so a False means that one was missed.
    """

    complete: bool = True

    def to_frame(self):  # type: ignore[no-untyped-def]  # pandas is imported when used
        """Return a table, one row per solution."""
        from outlearn.theory.results import to_frame

        return to_frame(self)


def branches(learner: Learner, ensemble: Ensemble, alpha: float, *, thorough: bool = True) -> Branches:
    """Find every solution of the saddle-point equations, sorted by free energy.

    Newton from the learner's starts, then from the same starts with the known solutions deflated, then from a
    dense grid, then by continuation in eta and alpha from the neighbourhood (``thorough=False`` stops as soon
    as the signed count of solutions is right). Names given to branches: "only" if there is one solution, else
    "informative" for the largest R and "uninformative" for the smallest among those that the damped iteration
    could reach, "trivial" for R = Q = 0, "unstable" for those it could not, "intermediate" for the rest.

    >>> from outlearn import theory
    >>> found = branches(theory.SoftSelection(), Ensemble(eta=3.9, gamma=10.0), alpha=20)
    >>> [(s.branch, round(s.R, 4)) for s in found]
    [('informative', 0.6485), ('uninformative', 0.0863), ('unstable', 0.3638)]
    """
    system = system_of(learner)
    points = Points.of(ensemble, positive("alpha", alpha))
    found = search(system, points, thorough=flag("thorough", thorough))
    if thorough:
        found = _continue_from_neighbours(learner, points, found)
    result = Branches(describe(learner, points, found, 0))
    result.complete = bool(found.complete[0])
    return result


def solve(
    learner: Learner,
    ensemble: Ensemble,
    alpha: float,
    *,
    branch: Branch = "equilibrium",
    on_failure: Literal["raise", "return"] = "raise",
) -> SaddlePoint:
    """Solve the saddle-point equations on one branch.

    Parameters
    ----------
    branch : {"equilibrium", "informative", "uninformative"}
        The solution of lowest free energy; of largest R; of smallest R. Solutions that no damped iteration
        could reach are not offered. Where there is only one solution it answers to every name.
    on_failure : {"raise", "return"}
        What to do if there is no solution: raise ConvergenceError (``partial`` holds the best attempt) or
        return the best attempt with a status that says so.

    >>> from outlearn import theory
    >>> solve(theory.SoftSelection(), Ensemble(eta=4.0, gamma=10.0), alpha=20).status
    <Status.CONVERGED: 'The residual is below the tolerance.'>
    """
    choice("branch", branch, get_args(Branch))
    choice("on_failure", on_failure, ("raise", "return"))
    system = system_of(learner)
    points = Points.of(ensemble, positive("alpha", alpha))
    found = search(system, points)
    if not found.complete[0]:
        found = _continue_from_neighbours(learner, points, found)
    answer = _choose(learner, points, found, 0, branch)
    if on_failure == "raise" and answer.status in (Status.NO_SOLUTION, Status.NOT_DEFINED):
        raise ConvergenceError(
            f"{learner!r} at alpha={alpha:g}, {ensemble!r}: {answer.status} "
            f"(best residual {answer.residual:.2g})",
            partial=answer,
        )
    return answer


def learning_curve(
    learner: Learner, ensemble: Ensemble, alphas: ArrayLike, *, branch: Branch = "equilibrium"
) -> list[SaddlePoint]:
    """Solve at many alpha at once, on the chosen branch at each; failures keep their status in the list.

    >>> from outlearn import theory
    >>> curve = learning_curve(theory.Hebb(), Ensemble(eta=0.0, gamma=10.0), [1.0, 4.0])
    >>> [round(s.angle, 4) for s in curve]
    [0.1795, 0.0975]
    """
    choice("branch", branch, get_args(Branch))
    system = system_of(learner)
    points = Points.of(ensemble, numbers("alphas", alphas, "finite numbers > 0", is_positive))
    found = search(system, points)
    return [_choose(learner, points, found, k, branch) for k in range(len(points))]


def describe(learner: Learner, points: Points, found: Found, k: int) -> list[SaddlePoint]:
    """Every solution of point k as a result, named and sorted by free energy."""
    rows = found.of(k)
    mine = points.take(np.full(len(rows), k, dtype=np.int64))
    solved = make_results(learner, mine, found.v[rows], found.residual[rows], found.sign[rows])
    return sorted(_named(solved + _explicit(learner, points.take([k]))), key=lambda s: s.free_energy)


def make_results(
    learner: Learner, points: Points, v: NDArray[np.float64], residual: NDArray[np.float64], sign: ArrayLike
) -> list[SaddlePoint]:
    """Turn solutions v, row by row, into results; ``sign`` -1 marks the unstable ones."""
    if not len(v):
        return []
    system = learner.system()
    energy, at = system.free_energy(points, v), system.at_eigenvalue(points, v)
    error, values = system.quadrature_error(points, v), system.order_parameters(points, v)
    out = []
    for i, s in enumerate(np.asarray(sign)):
        status = Status.CONVERGED if residual[i] < TOLERANCE else Status.ROUNDING_FLOOR
        if not error[i] < _QUADRATURE_TOLERANCE * max(1.0, abs(float(values["Q"][i]))):
            status = Status.QUADRATURE_LIMITED
        out.append(
            SaddlePoint(
                learner=learner,
                ensemble=points.ensemble(i),
                alpha=float(points.alpha[i]),
                **_order_parameters(values, i),
                free_energy=float(energy[i]),
                at_eigenvalue=float(at[i]),
                residual=float(residual[i]),
                quadrature_error=float(error[i]),
                branch="unstable" if s < 0 else "",
                status=status,
            )
        )
    return out


def _explicit(learner: Learner, point: Points) -> list[SaddlePoint]:
    """The explicit solutions that exist at one point."""
    return [
        SaddlePoint(
            learner=learner,
            ensemble=point.ensemble(0),
            alpha=float(point.alpha[0]),
            **_order_parameters(extra.order_parameters, 0),
            free_energy=float(extra.free_energy[0]),
            at_eigenvalue=float(extra.at_eigenvalue[0]),
            residual=0.0,
            quadrature_error=0.0,
            branch=extra.branch,
            status=Status.EXPLICIT,
        )
        for extra in learner.system().explicit(point)
        if extra.exists[0]
    ]


def _order_parameters(values: Mapping[str, NDArray[np.float64]], i: int) -> dict[str, Any]:
    numbers = {name: float(array[i]) for name, array in values.items()}
    known: dict[str, Any] = {name: numbers[name] for name in _KNOWN if name in numbers}
    return known | {"details": tuple((n, x) for n, x in numbers.items() if n not in _KNOWN)}


def _named(points: list[SaddlePoint]) -> list[SaddlePoint]:
    """Give each solution its name (see :func:`branches`)."""
    reachable = sorted((p for p in points if p.branch != "unstable"), key=lambda p: -p.R)
    names = {}
    for i, p in enumerate(reachable):
        if p.branch == "trivial":
            continue
        if len(points) == 1:
            names[id(p)] = "only"
        elif i == 0:
            names[id(p)] = "informative"
        elif i == len(reachable) - 1:
            names[id(p)] = "uninformative"
        else:
            names[id(p)] = "intermediate"
    return [dataclasses.replace(p, branch=names[id(p)]) if id(p) in names else p for p in points]


def _choose(learner: Learner, points: Points, found: Found, k: int, branch: Branch) -> SaddlePoint:
    everything = describe(learner, points, found, k)
    reachable = [p for p in everything if p.branch != "unstable"] or everything
    if not reachable:
        return _failure(learner, points, found, k)
    if branch == "equilibrium":
        return reachable[0]
    by_overlap = sorted(reachable, key=lambda p: p.R)
    return by_overlap[-1] if branch == "informative" else by_overlap[0]


def _failure(learner: Learner, points: Points, found: Found, k: int) -> SaddlePoint:
    """The best attempt at point k, with a status that says what it is worth."""
    system = learner.system()
    one = points.take([k])
    v = found.attempt[k : k + 1]
    reached = bool(np.isfinite(v).all())
    values = system.order_parameters(one, v) if reached else {n: np.zeros(1) for n in ("R", "Q", "q")}
    undefined = not reached or bool(system.undefined(one, v)[0])
    energy = float(system.free_energy(one, v)[0]) if reached else math.inf
    return SaddlePoint(
        learner=learner,
        ensemble=points.ensemble(k),
        alpha=float(points.alpha[k]),
        **_order_parameters(values, 0),
        free_energy=energy if math.isfinite(energy) else math.inf,
        at_eigenvalue=math.inf,
        residual=float(found.attempt_residual[k]),
        quadrature_error=math.inf,
        branch="none",
        status=Status.NOT_DEFINED if undefined else Status.NO_SOLUTION,
    )


def _continue_from_neighbours(learner: Learner, points: Points, found: Found) -> Found:
    """Solve a ring of points around each, and carry every solution found there back along a straight path."""
    system = learner.system()
    around: list[tuple[str, Sequence[float]]] = [("eta", (-0.6, 0.6)), ("alpha", (0.5, 2.0))]
    seeds: list[NDArray[np.float64]] = []
    for over, moves in around:
        for move in moves:
            here = getattr(points, over)
            there = here + move if over == "eta" else here * move
            far = search(system, points.shifted(over, there))
            v = far.v
            owner = far.owner
            for t in np.linspace(1.0, 0.0, 7)[1:]:
                between = here + t * move if over == "eta" else here * move**t
                step = search(
                    system, points.shifted(over, between), seeds=(v, owner), own_starts=False, nets=False
                )
                v, owner = step.v, step.owner
            seeds.append(v)
    return search(
        system,
        points,
        known=found,
        seeds=(np.concatenate(seeds), np.zeros(sum(map(len, seeds)), dtype=np.int64)),
        own_starts=False,
    )
