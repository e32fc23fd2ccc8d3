"""Whether Markov chains agree: rank-normalised split R-hat and effective sample size."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri
from scipy.stats import rankdata

__all__ = ["BatchMeans", "effective_sample_size", "r_hat"]

Array = NDArray[np.float64]


def r_hat(draws: ArrayLike) -> float:
    """Rank-normalised split R-hat of draws (n_chains, n_draws) (Vehtari et al. 2021): 1 where chains agree.

    The larger of that of the draws (do they agree in location?) and of their distances from the median (in
    scale?).

    >>> rng = np.random.default_rng(0)
    >>> round(r_hat(rng.normal(size=(4, 500))), 2)
    1.0
    >>> r_hat(rng.normal(size=(4, 500)) + np.arange(4)[:, None]) > 1.3
    True
    """
    split = _split(draws)
    if np.ptp(split) == 0.0:
        return 1.0
    folded = np.abs(split - np.median(split))
    return max(_between_to_within(_rank_normalised(split)), _between_to_within(_rank_normalised(folded)))


def effective_sample_size(draws: ArrayLike) -> float:
    """How many independent draws the draws (n_chains, n_draws) are worth (bulk, rank-normalised).

    Autocorrelations of all chains together, summed until a pair of them is no longer positive (Geyer).

    >>> rng = np.random.default_rng(0)
    >>> 1500 < effective_sample_size(rng.normal(size=(4, 500))) < 2500
    True
    """
    split = _split(draws)
    m, n = split.shape
    if np.ptp(split) == 0.0 or n < 4:
        return float(m * n)
    z = _rank_normalised(split)
    centred = z - z.mean(axis=1, keepdims=True)
    spectrum = np.abs(np.fft.rfft(centred, n=2 * n, axis=1)) ** 2
    covariance = np.fft.irfft(spectrum, axis=1)[:, :n].mean(axis=0) / n
    within = covariance[0] * n / (n - 1)
    total = within * (n - 1) / n + z.mean(axis=1).var(ddof=1)
    correlation = 1.0 - (within - covariance * n / (n - 1)) / total
    correlation[0] = 1.0
    pairs = correlation[: n - n % 2].reshape(-1, 2).sum(axis=1)
    stop = int(np.argmax(pairs <= 0.0)) if (pairs <= 0.0).any() else len(pairs)
    time = 2.0 * np.minimum.accumulate(pairs[:stop]).sum() - 1.0
    # Antithetic chains may beat independent draws; a bound keeps noise from promising too much.
    return float(m * n / max(time, 1.0 / np.log10(max(m * n, 10))))


class BatchMeans:
    """Mean over the draws of several chains, and its error from the scatter of batch means.

    Only the batch at hand is kept, chain by chain: ``now`` (n_chains, size) is what draws are added to.

    >>> means = BatchMeans(n_chains=1, size=1)
    >>> for draws in ([1.0, 3.0], [4.0, 8.0]):
    ...     for draw in draws:
    ...         means.now += draw
    ...     means.close(2)
    >>> means.mean.tolist(), means.error.tolist()
    ([4.0], [2.0])
    """

    def __init__(self, n_chains: int, size: int) -> None:
        self.now = np.zeros((n_chains, size))
        self._sum, self._means, self._squares = np.zeros(size), np.zeros(size), np.zeros(size)
        self._draws = self._batches = 0

    def close(self, n_draws: int) -> None:
        """End a batch of so many draws of every chain."""
        self._sum += self.now.sum(axis=0)
        self._draws += n_draws * len(self.now)
        self.now /= n_draws
        self._means += self.now.sum(axis=0)
        self._squares += np.square(self.now, out=self.now).sum(axis=0)
        self._batches += len(self.now)
        self.now[...] = 0.0

    @property
    def mean(self) -> Array:
        """Mean over all draws."""
        return self._sum / self._draws

    @property
    def error(self) -> Array:
        """Standard error of the mean."""
        m = self._batches
        return np.sqrt(np.maximum(self._squares - self._means**2 / m, 0.0) / (m * (m - 1.0)))


def _split(draws: ArrayLike) -> Array:
    chains = np.atleast_2d(np.asarray(draws, dtype=np.float64))
    half = chains.shape[1] // 2
    return np.concatenate([chains[:, :half], chains[:, chains.shape[1] - half :]])


def _rank_normalised(chains: Array) -> Array:
    ranks = rankdata(chains, axis=None).reshape(chains.shape)
    return ndtri((ranks - 0.375) / (chains.size + 0.25))


def _between_to_within(chains: Array) -> float:
    n = chains.shape[1]
    within = chains.var(axis=1, ddof=1).mean()
    if within == 0.0:
        return float("inf")
    return float(np.sqrt((n - 1) / n + chains.mean(axis=1).var(ddof=1) / within))
