"""Message passing: the beliefs, the step they take, their free energy, the parameters learned on the way.

Model of a folded row: y = V c + noise, noise variance s2, V from a few values, a prior on the centre c.
The posteriors of V and c are approximated by the stationary point of the Bethe free energy

    G = sum_mu KL_mu + KL_c - [ u·Ym - (|u|²(|m|² + S) + |m|² T)/2 ]/s2,

u, T: means of V and their summed variance; m, S: mean of c and its summed variance; KL: divergence of a
belief from its prior. -ln P(data) is G plus what pure noise would cost. Its stationarity conditions are
the fixed point of the message-passing steps, one read of the data each:

    B_u = (Y m - S u_old)/s2,   A_u = |m|²/s2,     u, T from p(V) exp(B_u V - A_u V²/2)
    B_c = (Y^T u - T m)/s2,     A_c = |u|²/s2,     m, S from p(c) exp(B_c·c - A_c |c|²/2)

Given one of the two beliefs, G is convex in the other: minimising over them in turn is the safe step,
used when the message-passing step lets G rise or stops making progress.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from outlearn.inference.prior import CenterPrior, Moments, SelectionPrior
from outlearn.inference.rows import Reads

__all__ = ["AmpStatus", "AmpStep", "Model", "Passing"]

Array = NDArray[np.float64]

_MEMORY = 5  # G may rise as long as it stays below its largest value over so many steps ...
_SLACK = 0.02  # ... or above that by so much per dimension: message passing overshoots a little on its way
_STALL = 15  # steps that reverse each other, without a smaller residual, before safe steps are taken
_EVIDENCE_TOL = 2e-3  # nats: learned parameters have settled when so much was not gained ...
_EVIDENCE_STEPS = 15  # ... in so many steps


class AmpStatus(Enum):
    """How message passing ended, in words."""

    CONVERGED = "converged: the messages reproduce themselves within the tolerance"
    MAX_ITER = "not converged: the messages still moved at max_iter"
    DROPPED = "dropped: another start had a lower energy after the first steps"
    DIVERGED = "diverged: the messages grow or swing instead of settling; the last ones are returned"

    @property
    def converged(self) -> bool:
        """Whether the messages are a fixed point."""
        return self is AmpStatus.CONVERGED

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, slots=True, kw_only=True)
class AmpStep:
    """One accepted read: free energy before and residual of the step after it.

    ``square`` is |m|²/(N tau2), the self-overlap that state evolution follows; ``safe`` tells a safe step
    from message passing.
    """

    read: int
    free_energy: float
    residual: float
    square: float
    safe: bool


@dataclass(frozen=True, slots=True)
class Model:
    """The priors, the noise, and which of their parameters are learned."""

    selection: SelectionPrior
    noise: float
    centre: CenterPrior
    learn: frozenset[str]

    def logarithms(self) -> Array:
        """All parameters that are not 0, as unconstrained coordinates."""
        weights = [w for w in self.selection.weights if w > 0.0]
        return np.log([*weights, self.noise, self.centre.variance])

    def at(self, logarithms: Array) -> Model:
        """The model at other coordinates; the weights are normalised."""
        *weights, noise, variance = np.exp(logarithms).tolist()
        total, fresh = sum(weights), iter(weights)
        return Model(
            SelectionPrior(
                self.selection.values,
                tuple(next(fresh) / total if w > 0.0 else 0.0 for w in self.selection.weights),
            ),
            noise,
            replace(self.centre, variance=variance),
            self.learn,
        )


class Extrapolation:
    """Speeds up learned parameters: successive changes that shrink by one factor are summed to their end."""

    def __init__(self) -> None:
        self.path: list[Array] = []
        self.energy = math.inf
        self.longest = 16.0

    def __call__(self, model: Model, energy: float) -> Model:
        self.path.append(model.logarithms())
        if len(self.path) < 5:
            return model
        before, last = self.path[-2] - self.path[-3], self.path[-1] - self.path[-2]
        now, self.path = self.path[-1], []
        if energy > self.energy:
            self.longest = max(0.5 * self.longest, 1.0)  # the last leap did not pay
        self.energy = energy
        size = float(before @ before)
        rate = float(before @ last) / size if size > 0.0 else 0.0
        if rate <= 0.3:
            return model
        factor = min(rate / (1.0 - rate), self.longest) if rate < 1.0 else self.longest
        return model.at(now + np.clip(factor * last, -0.7, 0.7))


@dataclass(frozen=True, slots=True)
class Read:
    """All that one read of the data gave at a belief of the centre."""

    moments: Moments
    fields: Array
    weighted: Array  # Y^T u
    counts: Array  # expected number of examples at each value of V
    neg_entropy: float
    square_u: float  # |u|²
    spread_u: float  # T
    overlap: float  # u·Ym


class Passing:
    """One run from one start: beliefs, the step they take, and whether it is safe to take it."""

    def __init__(
        self,
        rows: Reads,
        model: Model,
        center: Array | None,
        damping: float | Literal["adaptive"],
        tol: float,
        on_step: Callable[[Array], None] | None,
    ) -> None:
        self.rows = rows
        self.model = model
        self.adaptive = damping == "adaptive"
        self.damping = 0.0 if damping == "adaptive" else float(damping)
        self.tol = tol
        self.on_step = on_step
        weight = rows.sample_weight
        self.weight = np.ones(rows.shape[0]) if weight is None else weight
        self.n_examples = float(self.weight.sum())
        self.squares = float(self.weight @ rows.square_norms())
        self.steps: list[AmpStep] = []
        self.status = AmpStatus.MAX_ITER
        self.energy = math.inf
        self.residual = math.inf
        self.n_iter = 0
        self.read: Read | None = None  # the last accepted one, and the belief it was taken at:
        self.center = np.zeros(rows.shape[1]) if center is None else center
        self.variance = model.centre.variance
        self._next = self.center, self.variance
        # The first reaction term of a given centre is not known: solve for it.
        self._solve_first = center is not None and self.adaptive
        self._safe = False  # minimise G from now on; the share of the way to the target that is gone at once:
        self._stride = 1.0
        self._target = self._next
        self._ceiling: deque[float] = deque(maxlen=_MEMORY)
        self._move = np.zeros(rows.shape[1])
        self._reversals, self._best_residual = 0, math.inf
        self._extrapolation = Extrapolation()
        self._best_energy, self._best_iter = math.inf, 0

    def advance(self, max_iter: int) -> None:
        """Pass messages until they reproduce themselves, or ``max_iter`` reads are spent."""
        while self.n_iter < max_iter and self.status is AmpStatus.MAX_ITER:
            self._advance_once()
        if self.status is AmpStatus.MAX_ITER and self._swings():
            self.status = AmpStatus.DIVERGED

    def _swings(self) -> bool:
        """Whether the residual is large and the second half of the steps did not make it smaller."""
        residuals = [step.residual for step in self.steps]
        half = len(residuals) // 2
        return half > 10 and min(residuals[half:]) > max(1e-2, 0.5 * min(residuals[:half]))

    def drop(self) -> None:
        """Give up in favour of another start."""
        if self.status is AmpStatus.MAX_ITER:
            self.status = AmpStatus.DROPPED

    def _advance_once(self) -> None:
        m, s = self._next
        self.n_iter += 1
        read = self._read(m, s, self._safe or (self.read is None and self._solve_first))
        energy = self.free_energy(read, m, s) + self._noise_energy()
        grown = not math.isfinite(energy) or float(m @ m) > 1e6 * self._largest_square()
        if grown and not self.adaptive:
            self.status = AmpStatus.DIVERGED
            return
        if self.adaptive and self.read is not None and (grown or self._rises(energy, m.size)):
            # Back to the last accepted beliefs, and on from there by a safer step.
            if self._safe:
                self._stride *= 0.4
            self._safe = True
            self._next = self._safe_step(self.read)
            return
        self.center, self.variance, self.read = m, s, read
        settled = self._relearn(read, m, s)
        G = self.free_energy(read, m, s)
        self.energy = G + self._noise_energy()
        self._ceiling.append(self.energy)
        self._target = target, spread = self._step(read, m)
        move, second = target - m, float(target @ target) + m.size * spread
        self.residual = float(np.linalg.norm(move)) / math.sqrt(second)
        self.steps.append(
            AmpStep(
                read=self.n_iter,
                free_energy=G,
                residual=self.residual,
                square=float(m @ m) / (m.size * self.model.centre.variance),
                safe=self._safe,
            )
        )
        if self.on_step is not None:
            self.on_step(m)
        if settled(self.residual):
            self.status = AmpStatus.CONVERGED
            return
        if self.adaptive and not self._safe:
            self._safe = self._oscillates(move)
        if self._safe:
            self._stride = min(1.0, 1.3 * self._stride) if self._stride > 0.0 else 0.5
            self._next = self._safe_step(read)
        else:
            self._next = (1.0 - self.damping) * target + self.damping * m, spread

    def _rises(self, energy: float, n: int) -> bool:
        """Whether a step must be taken back. Message passing may overshoot a little, safe steps may not."""
        if self._safe:
            return self._stride > 0.0 and energy > self.energy + 1e-12 * abs(self.energy)
        return len(self._ceiling) == _MEMORY and energy > max(self._ceiling) + _SLACK * n

    def _safe_step(self, read: Read) -> tuple[Array, float]:
        """Part of the way to where message passing would go, which is downhill; else the exact minimiser."""
        noise, centre = self.model.noise, self.model.centre
        A, reaction = read.square_u / noise, read.spread_u / noise
        target, spread = self._target
        if self._stride * (1.0 + reaction * spread) <= 1.0:
            self._stride = 0.0  # the exact minimiser needs no trial; longer strides are tried again after it
            return centre.posterior_with_reaction(A, read.weighted / noise, reaction)
        mean = self.center + self._stride * (target - self.center)
        return mean, centre.variance_at(mean, spread)

    def _oscillates(self, move: Array) -> bool:
        """Whether many moves took back the one before while the residual did not shrink."""
        if self.residual < 0.9 * self._best_residual:
            self._reversals, self._best_residual = 0, self.residual
        elif float(move @ self._move) < 0.0:
            self._reversals += 1
        self._move = move
        return self._reversals > _STALL

    def _read(self, m: Array, s: float, safe: bool) -> Read:
        """Read the data once: fields of all rows, what they say of V, the rows' sum under the means of V."""
        p, selection = self.rows.shape[0], self.model.selection
        A, S = float(m @ m) / self.model.noise, s * m.size
        scale, reaction = 1.0 / self.model.noise, S / self.model.noise
        old = self.read
        # Before the first read no V has been believed in: u_old = 0.
        memory = np.zeros(p) if old is None else old.moments.mean
        fields, tilt = np.empty(p), np.empty(p)
        mean, second, weights = np.empty(p), np.empty(p), np.empty((len(selection.values), p)).T

        def respond(rows: slice, H: Array) -> Array:
            fields[rows] = H[:, 0]
            if safe:
                got = selection.moments_with_reaction(A, scale * H[:, 0], reaction)
            else:
                B = scale * H[:, 0] - reaction * memory[rows]
                if self.damping and old is not None:
                    B = (1.0 - self.damping) * B + self.damping * old.moments.field[rows]
                got = selection.moments(A, B)
            mean[rows], second[rows], weights[rows], tilt[rows] = got
            return got.mean[:, None]

        weighted = self.rows.sweep(m[None, :], respond)[0]
        g = self.weight
        square = float(g @ mean**2)
        return Read(
            moments=Moments(mean, second, weights, tilt),
            fields=fields,
            weighted=weighted,
            counts=g @ weights,
            neg_entropy=float((g @ (weights * np.log(np.maximum(weights, 1e-300)))).sum()),
            square_u=square,
            spread_u=max(float(g @ second) - square, 0.0),
            overlap=float((g * mean) @ fields),
        )

    def _step(self, read: Read, m: Array) -> tuple[Array, float]:
        """Message passing's next belief of the centre, with the old mean in the reaction term."""
        noise = self.model.noise
        field = (read.weighted - read.spread_u * m) / noise
        return self.model.centre.posterior(read.square_u / noise, field)

    def free_energy(self, read: Read, m: Array, s: float) -> float:
        """Bethe free energy G of the beliefs of a read; the module's docstring writes it."""
        square, S = float(m @ m), s * m.size
        interaction = read.overlap - 0.5 * (read.square_u * (square + S) + square * read.spread_u)
        divergence = read.neg_entropy + self.model.selection.cross_entropy(read.counts)
        return divergence + self.model.centre.divergence(square, s) - interaction / self.model.noise

    def _noise_energy(self) -> float:
        """What pure noise with labels by a coin would cost: the rest of -ln P(data)."""
        noise, n = self.model.noise, self.rows.shape[1]
        density = 0.5 * n * math.log(2.0 * math.pi * noise) + math.log(2.0)
        return self.n_examples * density + 0.5 * self.squares / noise

    def _relearn(self, read: Read, m: Array, s: float) -> Callable[[float], bool]:
        """Set learned parameters to where the evidence is stationary, given the beliefs.

        Return the test of convergence: of the residual alone where nothing is learned. Else the parameters
        must stand still too, or the evidence: along a flat direction of it they creep on for ever.
        """
        model, learn = self.model, self.model.learn
        if not learn:
            return lambda residual: residual <= self.tol
        selection, noise, centre = model.selection, model.noise, model.centre
        square, S = float(m @ m), s * m.size
        if learn & {"contamination", "label_noise"}:
            selection = _relearned_selection(selection, read.counts, learn)
        if "noise_variance" in learn:
            # <|y - V c|²>; V and c of one row are correlated: T S less than the product of their moments.
            second = read.square_u * (square + S) + read.spread_u * square
            left = self.squares - 2.0 * read.overlap + second - read.spread_u * S
            noise = max(left, 1e-8 * self.squares) / (self.n_examples * m.size)
        if "center_variance" in learn:
            centre = centre.relearned(square, s)
        fresh = Model(selection, noise, centre, learn)
        moved = float(np.abs(fresh.logarithms() - model.logarithms()).max())
        self.model = self._extrapolation(fresh, self.energy)
        if self.energy < self._best_energy - _EVIDENCE_TOL:
            self._best_energy, self._best_iter = self.energy, self.n_iter
        quiet = self.n_iter - self._best_iter >= _EVIDENCE_STEPS
        return lambda residual: (
            (residual <= self.tol and moved <= 10.0 * self.tol) or (quiet and residual <= 1e2 * self.tol)
        )

    def _largest_square(self) -> float:
        """No centre inside the data is longer than this."""
        return self.rows.shape[1] * self.model.centre.variance + self.squares


def _relearned_selection(prior: SelectionPrior, counts: Array, learn: frozenset[str]) -> SelectionPrior:
    """Learn the outlier fraction, the flips among the rest, or both."""
    fresh = prior.relearned(counts)
    if "label_noise" in learn and "contamination" in learn:
        return fresh
    values = np.asarray(prior.values)
    if len(values) != 3 or set(prior.values) != {-1.0, 0.0, 1.0}:
        return fresh
    outliers = fresh.contamination if "contamination" in learn else prior.contamination
    flips = fresh.label_noise if "label_noise" in learn else prior.label_noise
    return SelectionPrior.of(outliers, flips)
