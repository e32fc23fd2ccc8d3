"""The engine of soft and hard selection: one pass, one M step, one energy, another gate.

A state is what the learner believes: a Gaussian q(c) = N(center, spread I) of the centre (spread 0: a point),
and the hyper-parameters. A pass gives every example the weight that is best under the state, and the energy

    F = P ln 2 + (P N/2) ln(2 pi s2) + sum |x|^2/(2 s2) - P ln p0 - sum_mu loss(a_mu) + prior,
    a_mu = z_mu.center/s2 - (|center|^2 + N spread)/(2 s2) - eta,

loss(a) = ln(1 + e^a) with weight sigma(a) (soft), max(0, a) with the step of a (hard). The prior term is
-ln N(J; 0, N tau2 I) for a point (J = sqrt(N) c, the paper's variable), KL(q || N(0, tau2 I)) for a Gaussian.
The M step minimises first over the centre, then over each learned hyper-parameter, the weights held: F never
rises.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

from outlearn.exceptions import DataError, ParameterError
from outlearn.inference.kernels import gate
from outlearn.inference.rows import Reads, Rows
from outlearn.model.checks import number

__all__ = [
    "LEARNABLE",
    "Beliefs",
    "Selection",
    "State",
    "Step",
    "gate_offset",
    "posterior_spread",
    "prior_energy",
]

Array = NDArray[np.float64]
LEARNABLE = ("contamination", "noise_variance", "center_variance")
_MOST = 1e100  # variances beyond overflow where they are multiplied
_POSITIVE = f"a number > 0 and < {_MOST:g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Beliefs:
    """Hyper-parameters in raw units: outlier fraction, noise, prior variance of a coordinate."""

    contamination: float
    noise_variance: float
    center_variance: float

    @classmethod
    def of(
        cls, contamination: object, noise_variance: object, center_variance: object, n_features: int
    ) -> Beliefs:
        """Check the ranges; ``center_variance`` None is the paper's prior, 1/N."""
        if center_variance is None:
            center_variance = 1.0 / n_features
        return cls(
            contamination=number(
                "contamination", contamination, "0 <= contamination < 1", lambda c: 0.0 <= c < 1.0
            ),
            noise_variance=number("noise_variance", noise_variance, _POSITIVE, _is_variance),
            center_variance=number("center_variance", center_variance, _POSITIVE, _is_variance),
        )

    @property
    def eta(self) -> float:
        """The chemical potential ln(p0/p1); -inf without outliers."""
        if self.contamination == 0.0:
            return -math.inf
        return math.log(self.contamination) - math.log1p(-self.contamination)


@dataclass(frozen=True, slots=True)
class State:
    """What the learner believes at one moment."""

    center: Array
    spread: float
    eta: float
    noise_variance: float
    center_variance: float


@dataclass(frozen=True, slots=True)
class Step:
    """What one pass at a state gave: its energy, and the state that the M step makes of it."""

    state: State
    next: State
    energy: float
    rounding: float  # size of the rounding error in energy
    total_weight: float
    posterior: State  # q(c) made the exact posterior under the weights, hyper-parameters as they were
    posterior_energy: float  # the energy there: H_h(V) for the hard gate


class Selection:
    """A fitting problem: data, gate, and which hyper-parameters are learned."""

    def __init__(
        self, reads: Reads, *, hard: bool, learn: Iterable[str] = (), n_features: int | None = None
    ) -> None:
        self.reads = reads
        self.hard = hard
        self.learn = _learnable(learn)
        # With a point for the centre the prior's variance would shrink to zero with it; the posterior
        # variance of the centre prevents that.
        self.uncertain = hard or "center_variance" in self.learn
        self.n_features = n_features or reads.shape[1]
        counts = reads.sample_weight
        self.counts = np.ones(reads.shape[0]) if counts is None else counts
        self.n_examples = float(self.counts.sum())
        self.square_sum = float(self.counts @ reads.square_norms())
        # matrix products of float32 data are made in float32
        self._product_eps = float(np.finfo(getattr(reads, "dtype", np.float64)).eps)
        self._everything: Array | None = None
        if "noise_variance" in self.learn and self.square_sum == 0.0:
            raise DataError("every row of X is zero: the noise variance cannot be learned")

    def state(self, center: Array, beliefs: Beliefs) -> State:
        """Begin at ``center``; its spread is what the expected number of inliers would leave."""
        s2, tau2 = beliefs.noise_variance, beliefs.center_variance
        kept = (1.0 - beliefs.contamination) * self.n_examples
        spread = posterior_spread(kept, s2, tau2) if self.uncertain else 0.0
        return State(np.asarray(center, dtype=np.float64), spread, beliefs.eta, s2, tau2)

    def read(self, states: Sequence[State], weights: Array | None = None) -> list[Step]:
        """Evaluate all states in one read; ``weights`` (P, K), ones before, takes those of the examples."""
        return self._read(states, weights)

    def weigh(self, state: State) -> tuple[Step, Array]:
        """Evaluate one state and keep the weight of every example."""
        weights = np.ones((self.reads.shape[0], 1))  # stays so without outliers
        (step,) = self._read([state], weights)
        return step, weights[:, 0]

    def _read(self, states: Sequence[State], weights: Array | None) -> list[Step]:
        gated = [k for k, state in enumerate(states) if math.isfinite(state.eta)]
        steps: list[Any] = [None] * len(states)
        if gated:
            D = np.array([states[k].center for k in gated])
            scale = np.array([1.0 / states[k].noise_variance for k in gated])
            offset = np.array([_offset(states[k], self.n_features) for k in gated])
            found = (
                weights if weights is None or len(gated) == len(states) else weights[:, : len(gated)].copy()
            )
            sums, totals, losses = _select(self.reads, self.counts, D, scale, offset, self.hard, found)
            if weights is not None and found is not None:
                weights[:, gated] = found
            for k, total_sum, total, loss in zip(gated, sums, totals, losses, strict=True):
                # ln p0 = -ln(1 + e^-eta)
                ln_p0 = -np.logaddexp(0.0, -states[k].eta)
                steps[k] = self._step(
                    states[k], total_sum, float(total), float(loss + self.n_examples * ln_p0)
                )
        for k, state in enumerate(states):
            if steps[k] is None:  # no outliers: every weight is 1 whatever the centre
                if self._everything is None:
                    self._everything = self.reads.weighted_sums(np.ones((self.reads.shape[0], 1)))[0]
                size = float(state.center @ state.center) + self.n_features * state.spread
                gain = float(state.center @ self._everything) - 0.5 * self.n_examples * size
                steps[k] = self._step(state, self._everything, self.n_examples, gain / state.noise_variance)
        return steps

    def _step(self, state: State, total_sum: Array, total: float, log_mixture: float) -> Step:
        """M step and energies from the statistics of one pass."""
        noise = self._noise_terms(state.noise_variance)
        prior = self._prior(state)
        energy = noise - log_mixture + prior
        best = self._posterior(state, total_sum, total)
        gain = self._work(state, total_sum, total) - self._work(best, total_sum, total)
        scale = abs(noise) + abs(log_mixture) + abs(prior) + self.n_examples
        rounding = 8 * np.finfo(float).eps * scale + self._product_eps * (abs(log_mixture) + self.n_examples)
        return Step(
            state=state,
            next=self._maximise(best, total_sum, total),
            energy=energy,
            rounding=rounding,
            total_weight=total,
            posterior=best,
            posterior_energy=energy - gain,
        )

    def _work(self, state: State, total_sum: Array, total: float) -> float:
        """Terms of F that depend on q(c) when the weights are held."""
        size = float(state.center @ state.center) + self.n_features * state.spread
        gain = float(state.center @ total_sum) - 0.5 * total * size
        return self._prior(state) - gain / state.noise_variance

    def _posterior(self, state: State, total_sum: Array, total: float) -> State:
        s2, tau2 = state.noise_variance, state.center_variance
        center = total_sum / (total + s2 / tau2)
        spread = posterior_spread(total, s2, tau2) if self.uncertain else 0.0
        return State(center, spread, state.eta, s2, tau2)

    def _maximise(self, best: State, total_sum: Array, total: float) -> State:
        eta, s2, tau2 = best.eta, best.noise_variance, best.center_variance
        size = float(best.center @ best.center) + self.n_features * best.spread
        if "contamination" in self.learn and math.isfinite(eta):
            # Kept half an example away from 0 and 1, where ln p0 or ln p1 ends.
            half = min(0.5, 0.25 * self.n_examples)
            kept = min(max(total, half), self.n_examples - half)
            eta = math.log(self.n_examples - kept) - math.log(kept)
        if "noise_variance" in self.learn:
            squares = self.square_sum - 2.0 * float(best.center @ total_sum) + total * size
            s2 = max(squares, np.finfo(float).eps * self.square_sum) / (self.n_examples * self.n_features)
        if "center_variance" in self.learn:
            tau2 = size / self.n_features
        return State(best.center, best.spread, eta, s2, tau2)

    def _noise_terms(self, s2: float) -> float:
        p, n = self.n_examples, self.n_features
        return p * math.log(2.0) + 0.5 * p * n * math.log(2.0 * math.pi * s2) + 0.5 * self.square_sum / s2

    def _prior(self, state: State) -> float:
        square = float(state.center @ state.center)
        return prior_energy(square, self.n_features, state.spread, state.center_variance)


# The formulas that compiled code shares.


@register_jitable
def prior_energy(square: float, n: int, spread: float, tau2: float) -> float:
    """-ln N(J; 0, N tau2 I) of a point with |c|^2 = square, or KL(q || N(0, tau2 I)) where spread > 0."""
    if spread > 0.0:
        return 0.5 * n * ((square / n + spread) / tau2 - 1.0 - math.log(spread / tau2))
    return 0.5 * n * math.log(2.0 * math.pi * n * tau2) + 0.5 * square / tau2


@register_jitable
def gate_offset(square: float, n: int, spread: float, s2: float, eta: float) -> float:
    """What is added to z.c/s2 before the gate: -(|c|^2 + N spread)/(2 s2) - eta."""
    return -0.5 * (square + n * spread) / s2 - eta


@register_jitable
def posterior_spread(total: float, s2: float, tau2: float) -> float:
    """Variance of a coordinate of the centre once ``total`` examples are believed."""
    return 1.0 / (1.0 / tau2 + total / s2)


def _offset(state: State, n_features: int) -> float:
    square = float(state.center @ state.center)
    return gate_offset(square, n_features, state.spread, state.noise_variance, state.eta)


def _select(
    reads: Reads, counts: Array, D: Array, scale: Array, offset: Array, hard: bool, out: Array | None
) -> tuple[Array, Array, Array]:
    """One read: weighted sums, total weights and losses of every direction; the weights into ``out``."""
    if isinstance(reads, Rows):
        return reads.select(D, scale, offset, hard=hard, out=out)
    parts: dict[int, tuple[Array, Array]] = {}

    def respond(rows: slice, H: Array) -> Array:
        parts[rows.start] = gate(H, counts[rows], scale, offset, hard)
        if out is not None:
            out[rows] = H
        return H

    sums = reads.sweep(D, respond)
    order = sorted(parts)
    return sums, sum(parts[k][0] for k in order), sum(parts[k][1] for k in order)  # type: ignore[return-value]


def _learnable(learn: Iterable[str]) -> frozenset[str]:
    try:
        names = (learn,) if isinstance(learn, str) else tuple(learn)
    except TypeError:
        raise ParameterError("learn", learn, f"any of {', '.join(LEARNABLE)}") from None
    for name in names:
        if name not in LEARNABLE:
            raise ParameterError("learn", name, f"any of {', '.join(LEARNABLE)}")
    return frozenset(names)


def _is_variance(value: float) -> bool:
    return 0.0 < value < _MOST
