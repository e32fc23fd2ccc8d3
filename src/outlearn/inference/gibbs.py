"""Posterior of centre and selection by block Gibbs sampling: the independent check of message passing.

Given the centre the V are independent; given the V the centre is Gaussian with precision 1/tau2 + sum V²/s2
("Monte Carlo sampling" in the paper). All chains, at all temperatures, share one read of the data per sweep.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from outlearn.inference.chains import effective_sample_size, r_hat
from outlearn.inference.fitting import readable
from outlearn.inference.prior import SelectionPrior, learnable, refuse_silence, selection_prior
from outlearn.inference.rows import Reads
from outlearn.inference.sampler import N_BATCHES, Sampler, Tally
from outlearn.inference.selection import Beliefs
from outlearn.model.checks import count, generator, number

__all__ = ["GibbsResult", "GibbsStatus", "gibbs"]

Array = NDArray[np.float64]

_R_HAT = 1.05
_LEAST_DRAWS = 100.0  # effective, for "mixed"


class GibbsStatus(Enum):
    """Whether the chains may be believed, in words."""

    MIXED = "mixed: R-hat below 1.05 and at least 100 effective draws of every monitored quantity"
    NOT_MIXED = "not mixed: the chains disagree or move too slowly; sample longer or with temperatures"

    @property
    def converged(self) -> bool:
        """Whether the chains agree."""
        return self is GibbsStatus.MIXED

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class GibbsResult:
    """Posterior means with Monte Carlo errors, in raw units (c = J/√N).

    Attributes
    ----------
    center, center_error, center_std : array (n_features,)
        Posterior mean of the centre, its Monte Carlo error, posterior standard deviation.
    values, posterior : array (K,), array (n_samples, K)
        Values of V and their posterior probabilities.
    inlier_proba, inlier_proba_error : array (n_samples,)
        Posterior probability that V is not 0, its Monte Carlo error.
    contamination, label_noise, noise_variance, center_variance : float
        As given, or posterior means.
    monitors : dict of name to (n_chains, n_draws)
        Trace of log-likelihood, share of informative examples, |c|², learned parameters.
    r_hat, effective_draws : float
        Worst over the monitors and over random projections of the centre.
    swap_rate : float
        Accepted share of exchanges between neighbouring temperatures; nan without tempering.
    """

    center: Array
    center_error: Array
    center_std: Array
    values: Array
    posterior: Array
    inlier_proba: Array
    inlier_proba_error: Array
    contamination: float
    label_noise: float
    noise_variance: float
    center_variance: float
    monitors: dict[str, Array]
    r_hat: float
    effective_draws: float
    swap_rate: float
    n_chains: int
    n_draws: int
    n_reads: int
    status: GibbsStatus

    @property
    def converged(self) -> bool:
        """Whether the chains agree."""
        return self.status.converged

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain Python values (arrays as lists, without the traces)."""
        out: dict[str, Any] = {}
        for name in self.__slots__:
            value = getattr(self, name)
            if name != "monitors":
                out[name] = value.tolist() if isinstance(value, np.ndarray) else value
        out["status"] = self.status.name
        return out

    def to_frame(self) -> Any:
        """Return one row per monitored quantity: mean, error, R-hat, effective draws."""
        import pandas as pd

        table = []
        for name, trace in self.monitors.items():
            size = effective_sample_size(trace)
            error = float(trace.std()) / math.sqrt(size)
            table.append((name, float(trace.mean()), error, r_hat(trace), size))
        return pd.DataFrame(table, columns=["quantity", "mean", "error", "r_hat", "effective_draws"])

    def __repr__(self) -> str:
        p = self.inlier_proba
        return "\n".join(
            [
                f"GibbsResult: {self.status}",
                f"  {self.n_chains} chains of {self.n_draws} draws, {self.n_reads} reads; "
                f"R-hat {self.r_hat:.3f}, {self.effective_draws:.0f} effective draws",
                f"  {p.sum():.1f} of {p.size} examples informative; contamination {self.contamination:.4g}",
                f"  |center| {np.linalg.norm(self.center):.6g}, posterior std {self.center_std.mean():.4g}, "
                f"Monte Carlo error {self.center_error.mean():.1e}",
            ]
        )


def gibbs(
    X: ArrayLike | Reads,
    y: ArrayLike | None = None,
    *,
    contamination: float = 0.5,
    noise_variance: float,
    center_variance: float | None = None,
    label_noise: float | None = None,
    selection: SelectionPrior | None = None,
    learn: Iterable[str] = (),
    n_chains: int = 4,
    n_draws: int = 1000,
    burn_in: int | None = None,
    n_temperatures: int = 1,
    hottest: float = 0.3,
    init: str | ArrayLike = "prior",
    sample_weight: ArrayLike | None = None,
    rng: np.random.Generator | int | None = None,
    n_threads: int = 1,
) -> GibbsResult:
    """Sample the posterior of centre, selection and learned parameters (docs: theory/amp).

    Parameters
    ----------
    X, y, contamination, noise_variance, center_variance, label_noise, selection
        As in :func:`~outlearn.inference.amp.amp`; ``sample_weight`` must be whole numbers: copies of an
        example.
    learn
        Parameters sampled too: outlier fraction and label noise under flat priors, the noise variance under
        1/s2, the centre's variance under a flat prior of its root.
    n_chains, n_draws, burn_in
        Independent chains, draws kept of each, sweeps before (None: half of ``n_draws``). During the first
        half of them the likelihood's power rises from 0 to its end: an annealed start.
    n_temperatures, hottest
        Above one: every chain has so many replicas with the likelihood to a power between 1 and
        ``hottest``, and neighbours exchange (parallel tempering), for a posterior of several modes.
    init
        "prior" (each chain its own draw) or an array (N,) or (n_chains, N).

    Examples
    --------
    >>> from outlearn.model import Ensemble, sample
    >>> data = sample(Ensemble(eta=0.0, gamma=10.0), n_features=20, n_samples=100, rng=0)
    >>> found = gibbs(data.X, data.y, contamination=0.5, noise_variance=0.1, n_draws=300, rng=0)
    >>> found.converged
    True
    """
    rows = readable(X, y, sample_weight, n_threads)
    prior = selection_prior(selection, contamination, label_noise)
    beliefs = Beliefs.of(min(prior.contamination, 0.5), noise_variance, center_variance, rows.shape[1])
    n_chains, n_draws = count("n_chains", n_chains), count("n_draws", n_draws, least=2 * N_BATCHES)
    burn_in = n_draws // 2 if burn_in is None else count("burn_in", burn_in, least=0)
    n_temperatures = count("n_temperatures", n_temperatures)
    hottest = number("hottest", hottest, "0 < hottest <= 1", lambda h: 0.0 < h <= 1.0)
    refuse_silence(rows, learnable(learn, prior))
    reads_before = rows.n_reads
    sampler = Sampler(
        rows,
        prior,
        beliefs,
        learnable(learn, prior),
        n_chains,
        np.geomspace(1.0, hottest, n_temperatures) if n_temperatures > 1 else np.ones(1),
        init,
        generator("rng", rng),
    )
    for k in range(burn_in):
        sampler.sweep(power=min(1.0, 2.0 * (k + 1) / burn_in))
    tally = Tally(sampler, n_draws)
    for k in range(n_draws):
        tally.begin(k)
        sampler.sweep(tally=tally)
    return _result(tally, rows.n_reads - reads_before)


def _result(tally: Tally, n_reads: int) -> GibbsResult:
    """Means, errors, and whether to believe them."""
    sampler = tally.sampler
    n_chains = sampler.shape[1]
    traces = [*tally.monitors.values(), *tally.projections]
    worst = max(r_hat(trace) for trace in traces)
    size = min(effective_sample_size(trace) for trace in traces)
    total = n_chains * tally.n_draws
    center = tally.mean.mean
    mixed = worst < _R_HAT and size >= _LEAST_DRAWS
    levels = sampler.shape[0]

    def learned(name: str, given: float) -> float:
        return float(tally.monitors[name].mean()) if name in sampler.learn else given

    return GibbsResult(
        center=center,
        center_error=tally.mean.error,
        center_std=np.sqrt(np.maximum(tally.second / total - center**2, 0.0)),
        values=sampler.values,
        posterior=tally.posterior / total,
        inlier_proba=tally.inlier.mean,
        inlier_proba_error=tally.inlier.error,
        contamination=learned("contamination", sampler.prior.contamination),
        label_noise=learned("label_noise", sampler.prior.label_noise),
        noise_variance=learned("noise_variance", float(sampler.noise[0])),
        center_variance=learned("center_variance", float(sampler.tau2[0])),
        monitors=tally.monitors,
        r_hat=worst,
        effective_draws=size,
        swap_rate=2.0 * sampler.swaps / (sampler.trials * (levels - 1)) if levels > 1 else math.nan,
        n_chains=n_chains,
        n_draws=tally.n_draws,
        n_reads=n_reads,
        status=GibbsStatus.MIXED if mixed else GibbsStatus.NOT_MIXED,
    )
