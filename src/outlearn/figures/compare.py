"""Theory for figures: every branch as a line of its kind, and the saddle point beside the runs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from outlearn import theory
from outlearn.figures.plate import Agreement
from outlearn.figures.style import Panel
from outlearn.model import Ensemble, angle, distance
from outlearn.simulation import Task, TaskStats
from outlearn.theory.paths import Stretch, from_axis, stretches, to_axis
from outlearn.theory.search import polish
from outlearn.theory.system import Points

__all__ = [
    "THEORY",
    "BranchLine",
    "agree",
    "branch_lines",
    "draw_branches",
    "draw_runs",
    "path_lines",
    "verdict",
]

Array = NDArray[np.float64]

THEORY: dict[str, Any] = {
    "soft": theory.SoftSelection(),
    "hard": theory.HardSelection(),
    "hebb": theory.Hebb(),
    "amp": theory.BayesOptimal(),
}

_STANDARD_ERRORS = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchLine:
    """A piece of one branch along a parameter: "equilibrium", "metastable" or "unstable" throughout."""

    kind: str
    x: Array
    R: Array
    Q: Array

    @property
    def angle(self) -> Array:
        """Direction error."""
        return np.asarray(angle(self.R, self.Q))

    @property
    def distance(self) -> Array:
        """Squared distance to the truth per coordinate."""
        return np.asarray(distance(self.R, self.Q))


def branch_lines(
    learner: Any, ensemble: Ensemble, alpha: float, *, over: str, between: tuple[float, float], n: int = 240
) -> list[BranchLine]:
    """Every branch over an interval of "eta" or "alpha", cut where the equilibrium passes to another.

    >>> lines = branch_lines(THEORY["soft"], Ensemble(0.0, 10.0), 20.0, over="eta", between=(3.0, 5.0))
    >>> sorted({line.kind for line in lines})
    ['equilibrium', 'metastable', 'unstable']
    """
    system = learner.system()
    base = Points.of(ensemble, between[0] if over == "alpha" else alpha)
    low, high = (float(x) for x in to_axis(over, np.array(between, dtype=np.float64)))
    found = stretches(system, base, over, (low, high))
    switches = [
        float(to_axis(over, np.array(t.value)))
        for t in theory.transitions(learner, ensemble, alpha, over=over, between=between)  # type: ignore[arg-type]
    ]
    edges = np.array([low, *sorted(switches), high])
    out: list[BranchLine] = []
    for mine in found:
        t, R, Q = _dense(system, base, over, mine, n, edges)
        if len(t) < 2:
            continue
        x = from_axis(over, t)
        for a, b in itertools.pairwise(edges):
            inside = np.flatnonzero((t >= a) & (t <= b))
            if len(inside) < 2:
                continue
            part = slice(inside[0], inside[-1] + 1)
            kind = _kind(mine, found, 0.5 * float(t[part][0] + t[part][-1]))
            if out and out[-1].kind == kind and out[-1].x[-1] == x[part][0]:
                last = out.pop()
                part = slice(inside[0] - len(last.x) + 1, inside[-1] + 1)
            out.append(BranchLine(kind=kind, x=x[part], R=R[part], Q=Q[part]))
    return out


def _kind(mine: Stretch, everything: Iterable[Stretch], t: float) -> str:
    """What this stretch is at t, which is far from where energies are equal."""
    if mine.sign < 0:
        return "unstable"
    energy = {id(s): float(np.interp(t, s.t, s.energy)) for s in everything if s.sign >= 0 and s.covers(t)}
    return "equilibrium" if energy[id(mine)] == min(energy.values()) else "metastable"


def path_lines(path: theory.Path) -> list[BranchLine]:
    """A path cut at its folds: reachable first, then unstable and reachable by turns.

    For equations whose solutions end somewhere, so that they cannot be listed from both ends.

    >>> path = theory.follow(
    ...     theory.SoftSelection("printed"), Ensemble(0.0, 10.0), 20.0, over="eta", start=2.0, stop=6.0)
    >>> [line.kind for line in path_lines(path)]
    ['equilibrium', 'unstable']
    """
    x = np.array(path.values)
    R, Q = (np.array([getattr(p, name) for p in path.points]) for name in ("R", "Q"))
    turns = np.flatnonzero(np.diff(np.sign(np.diff(x)))) + 1
    edges = [0, *turns, len(x) - 1]
    out = []
    for k, (a, b) in enumerate(itertools.pairwise(edges)):
        kind = "equilibrium" if k == 0 else ("unstable" if k % 2 else "metastable")
        out.append(BranchLine(kind=kind, x=x[a : b + 1], R=R[a : b + 1], Q=Q[a : b + 1]))
    return out


def _dense(
    system: Any, base: Points, over: str, s: Stretch, n: int, edges: Array
) -> tuple[Array, Array, Array]:
    """The stretch on a finer mesh that is denser towards its ends, each point solved again."""
    low, high = max(float(s.t[0]), edges[0]), min(float(s.t[-1]), edges[-1])
    if low >= high:
        return np.empty(0), np.empty(0), np.empty(0)
    own = (s.t >= low) & (s.t <= high)
    if s.explicit is not None:
        t = np.union1d(s.t[own], edges[(edges >= low) & (edges <= high)])
        return t, np.zeros(len(t)), np.zeros(len(t))
    mesh = 0.5 * (low + high) - 0.5 * (high - low) * np.cos(np.linspace(0.0, math.pi, n))
    # at its own ends (folds) the stretch is solved already, and Newton would not be
    ends = [x for x in (low, high) if x not in s.t]
    t = np.union1d(mesh[1:-1], [*edges[(edges > low) & (edges < high)], *ends])
    guess = np.array([s.guess(float(x)) for x in t])
    at = base.take(np.zeros(len(t), dtype=np.int64)).shifted(over, from_axis(over, t))
    v, residual, _ = polish(system, at, guess, np.arange(len(t)))
    good = (residual < 1e-9) & (np.abs(v - guess).max(axis=1) < 0.5)
    t, v = np.concatenate([s.t[own], t[good]]), np.concatenate([s.v[own], v[good]])
    t, order = np.unique(t, return_index=True)
    at = base.take(np.zeros(len(t), dtype=np.int64)).shifted(over, from_axis(over, t))
    values = system.order_parameters(at, v[order])
    return t, values["R"], values["Q"]


def draw_branches(
    panel: Panel,
    lines: Iterable[BranchLine],
    quantity: str,
    *,
    learner: str,
    label: str | None = None,
    bound: bool = False,
    printed: bool = False,
    series: str | None = None,
    **style: Any,
) -> None:
    """Draw one quantity along all branches; the label goes to the equilibrium.

    The equilibrium of a ``bound`` is what no learner can beat; equations as ``printed`` are thin.
    """
    names: dict[str, str] = {}
    if printed:
        names = dict.fromkeys(("metastable", "unstable"), "printed metastable") | {"equilibrium": "printed"}
    elif bound:
        names = {"equilibrium": "bound"}
    for line in sorted(lines, key=lambda line: line.kind != "equilibrium"):
        name = label if line.kind == "equilibrium" else None
        label = None if line.kind == "equilibrium" else label
        panel.curve(
            line.x,
            getattr(line, quantity),
            learner=learner,
            kind=names.get(line.kind, line.kind),
            series=series or learner,
            label=name,
            **style,
        )


def draw_runs(
    panel: Panel,
    pairs: Iterable[tuple[Task, TaskStats]],
    quantity: str,
    *,
    over: str,
    learner: str,
    series: str,
    label: str | None = None,
    **style: Any,
) -> None:
    """Draw the means of "Phi", "Delta", "R" or "Q" over runs against α or η."""
    rows = sorted(((task.alpha if over == "alpha" else task.ensemble.eta), stats) for task, stats in pairs)
    if not rows:
        return
    x = [value for value, _ in rows]
    stats = [getattr(s, quantity) for _, s in rows]
    panel.runs(
        x,
        [s.mean for s in stats],
        deviation=[s.std for s in stats],
        error=[s.standard_error for s in stats],
        count=[s.count for s in stats],
        learner=learner,
        series=series,
        label=label,
        **style,
    )


def agree(pairs: Iterable[tuple[Task, TaskStats]], *, quantities: str = "R Q Phi") -> list[Agreement]:
    """Put the exact saddle point beside the mean of the runs at every point.

    Where several solutions are reachable, runs see basins and no free energies: they are then compared with
    the solution that is nearest in R and Q.
    """
    out = []
    for task, stats in pairs:
        found = theory.branches(THEORY[task.learner], task.ensemble, task.alpha, thorough=False)
        reachable = [s for s in found if s.branch != "unstable"]
        chosen = min(
            reachable,
            key=lambda s, m=stats: math.hypot(s.R - m.R.mean, s.Q - m.Q.mean),  # type: ignore[misc]
        )
        overlap = max(s.R for s in reachable)
        exact = {"R": chosen.R, "Q": chosen.Q, "Phi": chosen.angle, "Delta": chosen.distance}
        names = quantities.split()
        out.append(
            Agreement(
                learner=task.learner,
                start=task.start or "-",
                n_features=task.n_features,
                alpha=task.alpha,
                eta=task.ensemble.eta,
                runs=stats.n_runs,
                zone="outside" if len(reachable) == 1 else "between spinodals",
                branch=chosen.branch,
                at_eigenvalue=chosen.at_eigenvalue,
                theory={name: exact[name] for name in names},
                mean={name: getattr(stats, name).mean for name in names},
                error={name: getattr(stats, name).standard_error for name in names},
                found=sum(v > 0.5 * overlap for v in stats.R.values) if len(reachable) > 1 else None,
                energy=stats.energy.mean if stats.energy.count else None,
                lowest=min(s.free_energy for s in reachable),
            )
        )
    return out


def verdict(points: Iterable[Agreement]) -> list[str]:
    """Say how many points agree within three standard errors, by zone, and how far off others are."""
    several = list(points)
    out = []
    for zone, stable in itertools.product(("outside", "between spinodals"), (True, False)):
        mine = [p for p in several if p.zone == zone and p.stable == stable]
        if not mine:
            continue
        where = "outside the spinodals" if zone == "outside" else "between the spinodals"
        where += ", where replica symmetry holds" if stable else ", where replica symmetry is broken (AT)"
        bad = [p for p in mine if max(abs(x) for x in p.pulls.values()) > _STANDARD_ERRORS]
        nearest = "" if zone == "outside" else " (nearest branch)"
        out.append(
            f"{len(mine) - len(bad)} of {len(mine)} points {where}, have {', '.join(mine[0].theory)} within "
            f"three standard errors of the exact theory{nearest}."
        )
        out += [_disagreement(p) for p in bad]
    return out


def _disagreement(p: Agreement) -> str:
    worst = max(p.pulls, key=lambda name: abs(p.pulls[name]))
    branch = f", {p.branch} branch" if p.zone != "outside" else ""
    return (
        f"Beyond three standard errors: {p.learner} from {p.start}, N = {p.n_features}, α = {p.alpha:g}, η = "
        f"{p.eta:g}{branch}: {worst} = {p.mean[worst]:.4f} ± {p.error[worst]:.4f} in {p.runs} runs, "
        f"{p.theory[worst]:.4f} in theory{_where(p)}."
    )


def _where(p: Agreement) -> str:
    """How many of the runs found the direction, and how far above the lowest solution they ended."""
    words = ""
    if p.found is not None and 0 < p.found < p.runs:
        words += f"; {p.found} of the runs find the direction"
    if p.energy is not None and p.lowest is not None:
        words += f"; energy {p.energy:.3f} per dimension in runs, {p.lowest:.3f} of the lowest solution"
    return words
