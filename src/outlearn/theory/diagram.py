"""Phase diagrams in (alpha, eta): every branch at every point, and the lines between the phases."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from outlearn.model import Ensemble, angle
from outlearn.model.checks import is_positive, numbers
from outlearn.numerics import Status
from outlearn.theory.crossings import Crossing, crossings, energies_at
from outlearn.theory.paths import Stretch, stretches
from outlearn.theory.search import Found, polish, search
from outlearn.theory.system import Learner, Points, System, system_of

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Line", "PhaseDiagram", "phase_diagram"]

Array = NDArray[np.float64]

# transitions further apart in eta than the step in ln alpha and this belong to different lines
_SAME_LINE = 0.6


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Line:
    """Points of one boundary line, sorted by alpha.

    ``kind`` is "first order", "lower spinodal", "upper spinodal" or "stability" (there the equilibrium's de
    Almeida-Thouless number is one). ``of`` numbers the transitions; a first-order line and its two
    spinodals share it. ``error`` is an estimate in eta.
    """

    kind: str
    of: int
    alpha: Array
    eta: Array
    error: Array


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PhaseDiagram:
    """All branches on a grid of alpha and eta.

    Arrays have shape (len(alphas), len(etas), most branches), nan where a point has fewer; branches are
    sorted by free energy.

    Attributes
    ----------
    R, Q, z, free_energy, at_eigenvalue, residual : arrays
    reachable : bool array
        False on branches that no damped iteration could reach.
    explicit : bool array
        True for solutions known without solving (the trivial one).
    n_branches : int array (A, E)
    equilibrium : int array (A, E)
        Index of the equilibrium along the last axis (-1 where nothing was found).
    status : object array (A, E)
        CONVERGED if the branches are complete by their signed count and all residuals are small.
    lines : tuple of Line
    """

    learner: Learner
    gamma: float
    alphas: Array
    etas: Array
    R: Array
    Q: Array
    z: Array
    free_energy: Array
    at_eigenvalue: Array
    residual: Array
    reachable: NDArray[np.bool_]
    explicit: NDArray[np.bool_]
    n_branches: NDArray[np.int64]
    equilibrium: NDArray[np.int64]
    status: NDArray[np.object_]
    lines: tuple[Line, ...]

    def at_equilibrium(self, name: str) -> Array:
        """One quantity ("R", "Q", "angle", ...) on the equilibrium branch, shape (A, E)."""
        if name in ("angle", "distance"):
            R, Q = self.at_equilibrium("R"), self.at_equilibrium("Q")
            return np.asarray(angle(R, Q)) if name == "angle" else Q - 2.0 * R + 1.0
        values = getattr(self, name)
        index = np.maximum(self.equilibrium, 0)[:, :, None]
        return np.where(self.equilibrium >= 0, np.take_along_axis(values, index, axis=2)[:, :, 0], np.nan)

    @property
    def angle(self) -> Array:
        """Direction error of every branch."""
        return np.where(np.isnan(self.R), np.nan, angle(np.nan_to_num(self.R), np.nan_to_num(self.Q)))

    def line(self, kind: str, of: int = 0) -> Line | None:
        """The boundary line of that kind, if it exists."""
        return next((x for x in self.lines if x.kind == kind and x.of == of), None)

    def to_dict(self) -> dict[str, Any]:
        """Return the grid, the branches and the lines, each as rows."""
        return {
            "learner": repr(self.learner),
            "gamma": self.gamma,
            "alphas": self.alphas.tolist(),
            "etas": self.etas.tolist(),
            "points": self.to_frame().to_dict("records"),
            "lines": self.lines_to_frame().to_dict("records"),
        }

    def to_frame(self) -> pd.DataFrame:
        """Return a table with one row per point and branch."""
        import pandas as pd

        a, e, b = np.nonzero(~np.isnan(self.R))
        names = ("R", "Q", "z", "free_energy", "at_eigenvalue", "residual", "reachable", "explicit")
        columns: dict[str, Any] = {"alpha": self.alphas[a], "eta": self.etas[e], "branch": b}
        columns |= {name: getattr(self, name)[a, e, b] for name in names}
        columns["angle"] = self.angle[a, e, b]
        columns["equilibrium"] = self.equilibrium[a, e] == b
        columns["status"] = [s.name for s in self.status[a, e]]
        return pd.DataFrame(columns)

    def lines_to_frame(self) -> pd.DataFrame:
        """Return the boundary lines as a table."""
        import pandas as pd

        parts = [
            pd.DataFrame({"kind": x.kind, "of": x.of, "alpha": x.alpha, "eta": x.eta, "error": x.error})
            for x in self.lines
        ]
        columns = ["kind", "of", "alpha", "eta", "error"]
        return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=columns)

    def __repr__(self) -> str:
        good = sum(s is Status.CONVERGED for s in self.status.flat)
        lines = ", ".join(f"{x.kind} {x.of} ({len(x.alpha)})" for x in self.lines) or "none"
        return (
            f"PhaseDiagram({self.learner!r}, gamma={self.gamma:g}, {len(self.alphas)} x {len(self.etas)} "
            f"points, {good} complete, up to {self.R.shape[2]} branches, lines: {lines})"
        )


def phase_diagram(
    learner: Learner,
    *,
    gamma: float,
    alphas: ArrayLike,
    etas: ArrayLike,
    gamma_tilde: float | None = None,
    progress: Callable[[float], None] | None = None,
) -> PhaseDiagram:
    """Compute every branch at every (alpha, eta), the equilibrium, and the boundary lines.

    For each alpha all branches are followed over eta, through their folds; the curves seed Newton at the grid
    points, all points at once. Points whose signed count of solutions is wrong are searched with finer nets.

    >>> from outlearn import theory
    >>> diagram = phase_diagram(theory.SoftSelection(), gamma=10, alphas=[10, 20], etas=[3.0, 3.9, 5.0])
    >>> diagram.n_branches.tolist()
    [[1, 1, 1], [1, 3, 1]]
    >>> round(float(diagram.line("first order").eta[1]), 5)
    3.92058
    """
    a, e = _axis("alphas", alphas, positive=True), _axis("etas", etas, positive=False)
    system = system_of(learner)
    base = Points.of(Ensemble(float(e[0]), gamma, gamma if gamma_tilde is None else gamma_tilde), a)
    span = (float(e[0]), float(e[-1]))
    found_lines: list[Line] = []
    paths: list[Stretch] = []
    if len(e) > 1:
        paths = stretches(
            system, base, "eta", span, progress=None if progress is None else lambda x: progress(0.5 * x)
        )
        found_lines = _lines(system, base, paths, span)
    points = base.take(np.repeat(np.arange(len(a)), len(e))).shifted("eta", np.tile(e, len(a)))
    seeds, owner = _seeds(paths, a, e, len(system.names))
    found = search(system, points, seeds=(seeds, owner), own_starts=not paths)
    if progress is not None:
        progress(1.0)
    return _assemble(learner, system, gamma, a, e, points, found, tuple(found_lines))


def _axis(name: str, values: ArrayLike, *, positive: bool) -> Array:
    accepts = is_positive if positive else np.isfinite
    permitted = f"increasing finite values{' > 0' if positive else ''}"
    return numbers(name, values, permitted, lambda x: accepts(x).all() and (np.diff(x) > 0.0).all())


def _seeds(paths: list[Stretch], a: Array, e: Array, n: int) -> tuple[Array, NDArray[np.int64]]:
    v, owner = [np.empty((0, n))], [np.empty(0, dtype=np.int64)]
    for s in paths:
        if s.explicit is not None:
            continue
        inside = np.flatnonzero((e >= s.t[0]) & (e <= s.t[-1]))
        if inside.size:
            v.append(np.stack([np.interp(e[inside], s.t, s.v[:, i]) for i in range(n)], axis=1))
            owner.append(s.row * len(e) + inside)
    return np.concatenate(v), np.concatenate(owner)


def _assemble(
    learner: Learner,
    system: System,
    gamma: float,
    a: Array,
    e: Array,
    points: Points,
    found: Found,
    lines: tuple[Line, ...],
) -> PhaseDiagram:
    count = len(points)
    at = points.take(found.owner)
    values = system.order_parameters(at, found.v)
    columns = {
        "R": values["R"],
        "Q": values["Q"],
        "z": values.get("z", np.full(len(found.v), np.nan)),
        "free_energy": system.free_energy(at, found.v),
        "at_eigenvalue": system.at_eigenvalue(at, found.v),
        "residual": found.residual,
        "reachable": (found.sign >= 0).astype(np.float64),
        "explicit": np.zeros(len(found.v)),
    }
    owner = found.owner
    for extra in system.explicit(points):
        k = np.flatnonzero(extra.exists)
        more = {
            **{name: extra.order_parameters.get(name, np.full(count, np.nan))[k] for name in ("R", "Q", "z")},
            "free_energy": extra.free_energy[k],
            "at_eigenvalue": extra.at_eigenvalue[k],
            "residual": np.zeros(len(k)),
            "reachable": np.full(len(k), 1.0 if extra.stable_under_iteration else 0.0),
            "explicit": np.ones(len(k)),
        }
        columns = {name: np.concatenate([columns[name], more[name]]) for name in columns}
        owner = np.concatenate([owner, k])
    number = np.bincount(owner, minlength=count)
    most = max(1, int(number.max(initial=0)))
    order = np.lexsort((columns["free_energy"], owner))
    slot = np.arange(len(owner)) - np.repeat(np.cumsum(number) - number, number)
    shape = (len(a), len(e), most)
    arrays = {}
    for name, column in columns.items():
        full = np.full((count, most), np.nan)
        full[owner[order], slot] = column[order]
        arrays[name] = full.reshape(shape)
    energy = np.where(arrays["reachable"] == 1.0, arrays["free_energy"], np.inf)
    equilibrium = np.where(np.isfinite(energy).any(axis=2), np.argmin(energy, axis=2), -1)
    status = np.full(count, Status.CONVERGED, dtype=object)
    status[~found.complete] = Status.ITERATION_LIMIT
    status[number == 0] = Status.NO_SOLUTION
    return PhaseDiagram(
        learner=learner,
        gamma=float(gamma),
        alphas=a,
        etas=e,
        **{name: arrays[name] for name in ("R", "Q", "z", "free_energy", "at_eigenvalue", "residual")},
        reachable=arrays["reachable"] == 1.0,
        explicit=arrays["explicit"] == 1.0,
        n_branches=number.reshape(shape[:2]),
        equilibrium=equilibrium,
        status=status.reshape(shape[:2]),
        lines=lines,
    )


def _lines(system: System, base: Points, paths: list[Stretch], span: tuple[float, float]) -> list[Line]:
    """First-order and spinodal lines, numbered from low eta, and the line of replica stability."""
    points: dict[tuple[str, int], list[tuple[float, float, float]]] = {}

    def put(kind: str, of: int, row: int, eta: float, error: float) -> None:
        points.setdefault((kind, of), []).append((float(base.alpha[row]), eta, error))

    for c, of in _tracks(base, crossings(system, base, "eta", paths, span)):
        put("first order", of, c.row, c.t, c.error)
        if c.above.low_fold is not None:
            put("lower spinodal", of, c.row, c.above.low_fold.t, c.above.low_fold.error)
        if c.below.high_fold is not None:
            put("upper spinodal", of, c.row, c.below.high_fold.t, c.below.high_fold.error)
    for row, eta, error in _stability_points(system, base, paths):
        put("stability", 0, row, eta, error)
    out = []
    for (kind, of), rows in sorted(points.items()):
        x = np.array(sorted(rows))
        out.append(Line(kind=kind, of=of, alpha=x[:, 0], eta=x[:, 1], error=x[:, 2]))
    return out


def _tracks(base: Points, jumps: list[Crossing]) -> list[tuple[Crossing, int]]:
    """Number the transitions so that a line keeps its number from one alpha to the next, by nearness."""
    last: dict[int, tuple[float, float]] = {}  # eta and ln alpha
    out: list[tuple[Crossing, int]] = []
    for row in np.argsort(base.alpha, kind="stable"):
        free, log_alpha = dict(last), float(np.log(base.alpha[row]))
        here = sorted((c for c in jumps if c.row == row), key=lambda c: c.t)
        pairs = sorted(
            (abs(c.t - t) - (log_alpha - before), i, of)
            for i, c in enumerate(here)
            for of, (t, before) in free.items()
        )
        taken: dict[int, int] = {}
        for gap, i, of in pairs:
            if i not in taken and of in free and gap < _SAME_LINE:
                taken[i] = of
                del free[of]
        for i, c in enumerate(here):
            of = taken.get(i, len(last))
            last[of] = c.t, log_alpha
            out.append((c, of))
    return out


def _stability_points(system: System, base: Points, paths: list[Stretch]) -> list[tuple[int, float, float]]:
    """Where the stability number of a reachable branch passes through one, by bisection on all at once."""
    wanted: list[tuple[Stretch, float, float]] = []
    solved = [s for s in paths if s.explicit is None and s.sign >= 0]
    if not solved:
        return []
    v, t = np.concatenate([s.v for s in solved]), np.concatenate([s.t for s in solved])
    row = np.concatenate([np.full(len(s.t), s.row) for s in solved])
    number = system.at_eigenvalue(base.take(row).shifted("eta", t), v)
    cursor = 0
    for s in solved:
        above = number[cursor : cursor + len(s.t)] >= 1.0
        cursor += len(s.t)
        wanted += [(s, float(s.t[i]), float(s.t[i + 1])) for i in np.flatnonzero(above[1:] != above[:-1])]
    if not wanted:
        return []
    low, high = np.array([w[1] for w in wanted]), np.array([w[2] for w in wanted])
    rows = base.take([w[0].row for w in wanted])

    def unstable(x: Array) -> NDArray[np.bool_]:
        here = rows.shifted("eta", x)
        guess = np.array([w[0].guess(float(y)) for w, y in zip(wanted, x, strict=True)])
        solution, _, _ = polish(system, here, guess, np.arange(len(wanted)))
        return system.at_eigenvalue(here, solution) >= 1.0

    starts_unstable = unstable(low)
    for _ in range(36):
        middle = 0.5 * (low + high)
        same = unstable(middle) == starts_unstable
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    lowest = _lowest(system, base, paths, wanted, low)
    return [
        (w[0].row, float(0.5 * (x + y)), float(y - x))
        for w, x, y, on in zip(wanted, low, high, lowest, strict=True)
        if on
    ]


def _lowest(
    system: System, base: Points, paths: list[Stretch], wanted: list[tuple[Stretch, float, float]], t: Array
) -> list[bool]:
    """Whether each wanted stretch is the equilibrium at its t."""
    out = []
    for (s, _, _), x in zip(wanted, t, strict=True):
        rivals = [o for o in paths if o.row == s.row and o.sign >= 0 and o.covers(float(x))]
        energy, _, good = energies_at(system, base, "eta", [(o, float(x)) for o in rivals])
        energy = np.where(good, energy, np.inf)
        out.append(bool(rivals[int(np.argmin(energy))] is s))
    return out
