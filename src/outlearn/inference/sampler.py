"""One sweep of block Gibbs sampling for all chains at all temperatures, and the sums over its draws."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from outlearn.exceptions import DataError, ParameterError
from outlearn.inference.chains import BatchMeans
from outlearn.inference.prior import SelectionPrior
from outlearn.inference.rows import Reads
from outlearn.inference.selection import Beliefs

__all__ = ["N_BATCHES", "Sampler", "Tally"]

Array = NDArray[np.float64]

N_BATCHES = 16  # per chain, for Monte Carlo errors
_N_PROJECTIONS = 16  # random directions along which the chains of the centre are compared


class Sampler:
    """States of all chains at all temperatures (G of them), and the sweep that moves them."""

    def __init__(
        self,
        rows: Reads,
        prior: SelectionPrior,
        beliefs: Beliefs,
        learn: frozenset[str],
        n_chains: int,
        ladder: Array,
        init: str | ArrayLike,
        rng: np.random.Generator,
    ) -> None:
        self.rows, self.prior, self.learn, self.rng = rows, prior, learn, rng
        self.values = np.asarray(prior.values)
        self.copies = _copies(rows)
        self.n_examples = float(rows.shape[0] if self.copies is None else self.copies.sum())
        norms = rows.square_norms()
        self.squares = float(norms.sum() if self.copies is None else self.copies @ norms)
        self.shape = len(ladder), n_chains
        G = len(ladder) * n_chains
        self.power = np.repeat(ladder, n_chains)  # of the likelihood, for every state
        self.weights = np.tile(prior.weights, (G, 1))
        self.noise = np.full(G, beliefs.noise_variance)
        self.tau2 = np.full(G, beliefs.center_variance)
        self.center = _begin(init, n_chains, len(ladder), rows.shape[1], beliefs.center_variance, rng)
        self.cold = np.arange(n_chains)  # which state holds power 1 of each chain
        self.swaps = self.trials = 0

    def sweep(self, power: float = 1.0, tally: Tally | None = None) -> None:
        """One read: all V given the centres, parameters and centres given the V."""
        beta = np.minimum(self.power, power)
        K = self.values.size
        seed = int(self.rng.integers(2**63))
        square = np.einsum("gi,gi->g", self.center, self.center)
        strength = beta / self.noise
        with np.errstate(divide="ignore"):
            offset = np.log(self.weights) - 0.5 * np.outer(square * strength, self.values**2)
        parts: dict[int, tuple[Array, Array]] = {}

        def respond(block: slice, H: Array) -> Array:
            logits = (H * strength)[:, :, None] * self.values + offset
            logits -= logits.max(axis=2, keepdims=True)
            weights = np.exp(logits)
            weights /= weights.sum(axis=2, keepdims=True)
            if tally is not None:
                tally.see(block, weights[:, self.cold])
            # every block has its own stream, whichever thread works on it
            stream = np.random.Generator(np.random.SFC64([seed, block.start]))
            if self.copies is None:
                steps = np.cumsum(weights, axis=2)[:, :, :-1]
                times = np.eye(K)[(stream.random((*H.shape, 1)) > steps).sum(axis=2)]
            else:
                times = stream.multinomial(self.copies[block, None], weights)
            total = times @ self.values
            parts[block.start] = times.sum(axis=0), (total * H).sum(axis=0)
            if self.copies is not None:  # the weighted sum multiplies by the copies again
                total /= np.maximum(self.copies[block], 1.0)[:, None]
            return total

        sums = self.rows.sweep(self.center, respond)
        counts = np.sum([parts[k][0] for k in sorted(parts)], axis=0)
        overlap = np.sum([parts[k][1] for k in sorted(parts)], axis=0)
        active = counts @ self.values**2
        misfit = self.squares - 2.0 * overlap + active * square
        size = self.n_examples * self.rows.shape[1]
        fit = -0.5 * misfit / self.noise - 0.5 * size * np.log(2.0 * np.pi * self.noise)
        if self.shape[0] > 1:
            self._exchange(fit)
            beta = np.minimum(self.power, power)
        self._draw_parameters(counts, misfit, beta, size)
        precision = 1.0 / self.tau2 + beta * active / self.noise
        mean = sums * (beta / self.noise / precision)[:, None]
        noise = self.rng.standard_normal(mean.shape)
        self.center = mean + noise / np.sqrt(precision)[:, None]
        if "center_variance" in self.learn:
            n = self.rows.shape[1]
            scale = 0.5 * np.einsum("gi,gi->g", self.center, self.center)
            # In one dimension that posterior would be improper; half a degree of freedom keeps it proper.
            freedom = self.rng.gamma(max(0.5 * (n - 1), 0.5), size=self.tau2.size)
            self.tau2 = np.maximum(scale, 1e-300) / freedom
        if tally is not None:
            tally.add(mean, precision, fit, counts)

    def _exchange(self, fit: Array) -> None:
        """Let neighbouring temperatures of each chain swap their powers, even and odd pairs in turn."""
        levels, n_chains = self.shape
        states = np.argsort(-self.power, kind="stable")
        where = np.empty(self.shape, dtype=np.intp)
        chain_of = np.arange(self.power.size) % n_chains
        for chain in range(n_chains):
            where[:, chain] = states[chain_of[states] == chain]
        for level in range(self.trials // n_chains % 2, levels - 1, 2):
            a, b = where[level], where[level + 1]
            gain = (self.power[a] - self.power[b]) * (fit[b] - fit[a])
            accept = np.log(self.rng.random(n_chains)) < gain
            a, b = a[accept], b[accept]
            self.power[a], self.power[b] = self.power[b], self.power[a]
            where[level, accept], where[level + 1, accept] = b, a
            self.swaps += int(accept.sum())
        self.trials += n_chains
        self.cold = where[0].copy()

    def _draw_parameters(self, counts: Array, misfit: Array, beta: Array, size: float) -> None:
        zero = self.values == 0.0
        outside = self.weights[:, zero].sum(axis=1)
        shares = self.weights[:, ~zero] / (1.0 - outside)[:, None]
        if "contamination" in self.learn:
            n_out = counts[:, zero].sum(axis=1)
            outside = self.rng.beta(n_out + 1.0, self.n_examples - n_out + 1.0)
        if "label_noise" in self.learn:
            drawn = self.rng.gamma(counts[:, ~zero] + 1.0)
            shares = drawn / drawn.sum(axis=1, keepdims=True)
        if self.learn & {"contamination", "label_noise"}:
            self.weights[:, zero] = outside[:, None]
            self.weights[:, ~zero] = shares * (1.0 - outside)[:, None]
        if "noise_variance" in self.learn:
            self.noise = 0.5 * beta * misfit / self.rng.gamma(0.5 * beta * size)


class Tally:
    """Sums over the draws of the cold chains."""

    def __init__(self, sampler: Sampler, n_draws: int) -> None:
        self.sampler, self.n_draws = sampler, n_draws
        P, n = sampler.rows.shape
        n_chains, K = sampler.shape[1], sampler.values.size
        directions = sampler.rng.standard_normal((_N_PROJECTIONS, n))
        self.directions = directions / np.linalg.norm(directions, axis=1, keepdims=True)
        self.mean = BatchMeans(n_chains, n)
        self.second = np.zeros(n)
        self.posterior = np.zeros((P, K))
        self.inlier = BatchMeans(n_chains, P)
        self.in_batch = 0
        names = ["log_likelihood", "informative", "square", *sorted(sampler.learn)]
        self.monitors = {name: np.zeros((n_chains, n_draws)) for name in names}
        self.projections = np.zeros((_N_PROJECTIONS, n_chains, n_draws))
        sampler.swaps = sampler.trials = 0

    def begin(self, draw: int) -> None:
        """Say which draw comes next."""
        self.draw = draw

    def see(self, block: slice, weights: Array) -> None:
        """Probabilities (rows, chains, K) of the values of V given the centres: better than the draws."""
        self.posterior[block] += weights.sum(axis=1)
        active = self.sampler.values != 0.0
        self.inlier.now[:, block] += weights[:, :, active].sum(axis=2).T

    def add(self, mean: Array, precision: Array, fit: Array, counts: Array) -> None:
        """Means of the centres given the V, and everything monitored."""
        sampler, cold, k = self.sampler, self.sampler.cold, self.draw
        self.mean.now += mean[cold]
        self.second += (mean[cold] ** 2 + (1.0 / precision[cold])[:, None]).sum(axis=0)
        center = sampler.center[cold]
        active = counts[cold][:, sampler.values != 0.0].sum(axis=1)
        zero = sampler.values == 0.0
        outside = sampler.weights[cold][:, zero].sum(axis=1)
        flipped = sampler.weights[cold][:, sampler.values < 0.0].sum(axis=1)
        now = {
            "log_likelihood": fit[cold],
            "informative": active / sampler.n_examples,
            "square": (center**2).sum(axis=1),
            "contamination": outside,
            "label_noise": flipped / (1.0 - outside),
            "noise_variance": sampler.noise[cold],
            "center_variance": sampler.tau2[cold],
        }
        for name, trace in self.monitors.items():
            trace[:, k] = now[name]
        self.projections[:, :, k] = self.directions @ center.T
        self.in_batch += 1
        if (k + 1) * N_BATCHES // self.n_draws > k * N_BATCHES // self.n_draws:
            self.mean.close(self.in_batch)
            self.inlier.close(self.in_batch)
            self.in_batch = 0


def _begin(
    init: str | ArrayLike, n_chains: int, levels: int, n: int, tau2: float, rng: np.random.Generator
) -> Array:
    if isinstance(init, str):
        if init != "prior":
            raise ParameterError("init", init, "'prior' or an array")
        return math.sqrt(tau2) * rng.standard_normal((levels * n_chains, n))
    given = np.array(init, dtype=np.float64, ndmin=2)
    if given.shape not in ((1, n), (n_chains, n)) or not np.isfinite(given).all():
        raise ParameterError("init", np.shape(init), f"({n},) or ({n_chains}, {n}) finite numbers")
    return np.tile(np.broadcast_to(given, (n_chains, n)), (levels, 1))


def _copies(rows: Reads) -> NDArray[np.int64] | None:
    weight = rows.sample_weight
    if weight is None:
        return None
    if not np.array_equal(weight, np.round(weight)):
        raise DataError("sampling counts copies of an example: sample_weight must be whole numbers")
    if weight.max() > 2**31:
        raise DataError("sampling counts copies of an example: sample_weight must be below 2^31")
    return np.asarray(weight, dtype=np.int64)
