"""Ways down the energy: plain EM, and extrapolation that is kept only where the energy did not rise.

Each way is a generator: it yields the state it wants read and is sent the Step that the read gave. So any
number of climbs share the reads of the data (see ``descend``).
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from outlearn.inference.selection import Selection, State, Step

__all__ = ["Climb", "Path", "descend", "plain", "squarem"]

Array = NDArray[np.float64]
Path = Generator[State, Step, None]


@dataclass(slots=True)
class Climb:
    """One start on its way: what it has reached, and when it may stop."""

    name: str
    start: State
    tol: float
    max_iter: int
    n_iter: int = 0
    residual: float = math.inf
    energies: list[float] = field(default_factory=list)
    last: Step | None = None
    converged: bool = False

    @property
    def ahead(self) -> State:
        """Where the last EM step leads."""
        return self.start if self.last is None else self.last.next

    @property
    def total_weight(self) -> float:
        """How many examples the last accepted state keeps."""
        return 0.0 if self.last is None else self.last.total_weight

    def accept(self, step: Step) -> bool:
        """Move to a step whose energy did not rise; True when it is time to stop."""
        self.last = step
        self.energies.append(step.energy)
        self.residual = residual(step)
        self.converged = self.residual <= self.tol
        return self.converged or self.n_iter >= self.max_iter


def residual(step: Step) -> float:
    """Undamped |F(c) - c|/|c|, with the relative change of what is learned; free of the data's scale."""
    before, after = step.state, step.next
    size = max(float(np.linalg.norm(before.center)), float(np.linalg.norm(after.center)))
    change = float(np.linalg.norm(after.center - before.center)) / size if size > 0.0 else 0.0
    return math.hypot(
        change,
        _outliers(after.eta) - _outliers(before.eta),
        math.log(after.noise_variance / before.noise_variance),
        math.log(after.center_variance / before.center_variance),
    )


def descend(
    problem: Selection, climbs: Sequence[Climb], scheme: Callable[[Climb], Path], rounds: int | None = None
) -> list[Climb]:
    """Run all climbs, to their end or for some rounds; return those that are not at their end.

    Every round reads the data once for all that are still on their way.
    """
    paths = [(climb, scheme(climb)) for climb in climbs]
    waiting = [(climb, path, next(path)) for climb, path in paths]
    while waiting and rounds != 0:
        steps = problem.read([state for _, _, state in waiting])
        going = []
        for (climb, path, _), step in zip(waiting, steps, strict=True):
            climb.n_iter += 1
            with contextlib.suppress(StopIteration):
                going.append((climb, path, path.send(step)))
        waiting = going
        rounds = None if rounds is None else rounds - 1
    return [climb for climb, _, _ in waiting]


def plain(climb: Climb) -> Path:
    """EM as it is."""
    step = yield climb.start
    while not climb.accept(step):
        step = yield step.next


def squarem(climb: Climb) -> Path:
    """Squared extrapolation (Varadhan & Roland's third step length), two reads for each jump.

    From x0, x1 = F(x0), x2 = F(x1): r = x1 - x0, v = x2 - 2 x1 + x0, x' = x0 + 2 t r + t^2 v, t = |r|/|v|
    >= 1. The read at x' gives both its energy and F(x'), so an accepted jump costs nothing extra; a rejected
    one costs one read, and EM goes on from x2.
    """
    step = yield climb.start
    while not climb.accept(step):
        start = step
        step = yield start.next
        if climb.accept(step):
            return
        x0, x1, x2 = (_pack(s) for s in (start.state, step.state, step.next))
        metric = _metric(step.state)
        r, v = x1 - x0, x2 - 2.0 * x1 + x0
        bend = float(v @ (metric * v))
        t = math.sqrt(float(r @ (metric * r)) / bend) if bend > 0.0 else 1.0
        if t > 1.0 and math.isfinite(step.state.eta):
            trial = yield _unpack(x0 + 2.0 * t * r + t * t * v, step.state)
            if trial.energy <= step.energy + step.rounding:
                step = trial
                continue
            if climb.n_iter >= climb.max_iter:
                return
        step = yield step.next


def _pack(state: State) -> Array:
    """Centre and unconstrained hyper-parameters in one vector."""
    spread = math.log(state.spread) if state.spread > 0.0 else 0.0
    rest = (spread, state.eta, math.log(state.noise_variance), math.log(state.center_variance))
    return np.concatenate([state.center, rest])


def _unpack(x: Array, like: State) -> State:
    spread, eta, s2, tau2 = (float(v) for v in x[-4:])
    if not max(abs(spread), abs(eta), abs(s2), abs(tau2)) < 700.0:
        return like  # an extrapolation beyond all numbers: stand still, the energy then does not rise
    return State(x[:-4], math.exp(spread) if like.spread > 0.0 else 0.0, eta, math.exp(s2), math.exp(tau2))


def _metric(state: State) -> Array:
    """Weights that make the centre's change relative, as that of the hyper-parameters is."""
    size = float(state.center @ state.center)
    weight = np.ones(state.center.size + 4)
    weight[:-4] = 1.0 / size if size > 0.0 else 1.0
    return weight


def _outliers(eta: float) -> float:
    return 0.5 + 0.5 * math.tanh(0.5 * eta)
