"""Order parameters and energies of finite-size minima against the saddle point, within three standard errors.

Theory and inference share no code: that they agree is evidence for both. Each point averages independent
runs; the standard error is that of their mean. Most of the scatter between runs is luck that has an exactly
known mean: how many examples are informative, and how long and how well aligned the Hebb vector is. These
serve as control variates, which makes the standard errors smaller and the test sharper.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from outlearn import theory
from outlearn.inference.hard import hard_em
from outlearn.inference.soft import soft_em
from outlearn.model import Dataset, Ensemble, sample

# alpha, eta, dimension, runs
SOFT = [
    (1.0, 0.0, 500, 120),
    (2.0, 0.0, 1000, 60),
    (5.0, 0.0, 500, 80),
    (5.0, 1.0, 500, 80),
    (10.0, 2.0, 500, 60),
    (20.0, 2.0, 500, 40),
]
HARD = [
    (2.0, -1.0, 500, 100),
    (5.0, -1.0, 500, 80),
    (5.0, 0.0, 500, 80),
    (10.0, 0.0, 500, 60),
    (10.0, 1.0, 500, 60),
    (20.0, 1.0, 500, 40),
]


def luck(e: Ensemble, data: Dataset) -> list[float]:
    """Share of informative examples, overlap and length of the Hebb sum, less their expectations."""
    p, n = data.X.shape
    J = data.y @ data.X / (p / n) / np.sqrt(n)
    p1 = e.informative_fraction
    mean_Q = p1**2 + p1 * (1.0 - p1) / p + n / (p * e.gamma)
    return [data.informative.mean() - p1, J @ data.center / n - p1, J @ J / n - mean_Q]


def soft_run(e: Ensemble, n: int, p: int, seed: int) -> tuple[list[float], list[float]]:
    """R, Q and energy per dimension of the best minimum that EM finds; the sample's luck."""
    data = sample(e, n, p, rng=seed)
    fit = soft_em(
        data.X,
        data.y,
        contamination=e.outlier_fraction,
        noise_variance=1 / e.gamma,
        n_init=2,
        tol=1e-7,
        rng=seed,
    )
    J = fit.center * np.sqrt(n)
    Q = J @ J / n
    field = e.gamma * (data.y * (data.X @ J) / np.sqrt(n) - 0.5 * Q) - e.eta
    return [J @ data.center / n, Q, 0.5 * Q - np.logaddexp(0.0, field).sum() / n], luck(e, data)


def hard_run(e: Ensemble, n: int, p: int, seed: int) -> tuple[list[float], list[float]]:
    """R, Q, energy and selected examples per dimension of the lowest minimum found; the sample's luck.

    EM for hard selection remembers its start: from the Hebb vector alone it keeps some 2 % more examples than
    the lowest minimum has (fourteen standard errors here), from random vectors a little fewer. The theory is
    about the lowest minimum: half of the starts are drawn from the prior and half around the truth, then the
    best is shaken and run again.
    """
    data = sample(e, n, p, rng=seed)
    rng = np.random.default_rng(seed)
    blind = rng.normal(size=(10, n)) / np.sqrt(n)
    truth = data.center / np.sqrt(n)
    starts = np.concatenate([blind, truth * rng.uniform(0.3, 1.6, (10, 1)) + 0.5 * blind])
    fit = None
    for _ in range(4):
        again = hard_em(
            data.X,
            data.y,
            contamination=e.outlier_fraction,
            noise_variance=1 / e.gamma,
            init=starts,
            rng=seed,
        )
        fit = again if fit is None or again.energy < fit.energy else fit
        shaken = rng.normal(size=(12, n)) * np.geomspace(0.02, 0.3, 12)[:, None] / np.sqrt(n)
        starts = fit.center * rng.uniform(0.9, 1.1, (12, 1)) + shaken
    J = fit.center * np.sqrt(n)
    Q, Q_hat = J @ J / n, fit.inlier_proba.sum() / n
    a = e.gamma * Q_hat + 1.0
    return [J @ data.center / n, Q, e.eta * Q_hat + 0.5 * np.log(a) - 0.5 * a * Q, Q_hat], luck(e, data)


def average(run, e: Ensemble, n: int, p: int, seeds: range) -> tuple[np.ndarray, np.ndarray]:
    """Mean of the runs with the sample's luck regressed out, and its standard error."""
    values, chance = (np.array(x) for x in zip(*(run(e, n, p, seed) for seed in seeds), strict=True))
    design = np.column_stack([np.ones(len(chance)), chance])
    coefficients, *_ = np.linalg.lstsq(design, values, rcond=None)
    residual = values - design @ coefficients
    variance = (residual**2).sum(axis=0) / (len(values) - design.shape[1])
    return coefficients[0], np.sqrt(variance * np.linalg.inv(design.T @ design)[0, 0])


@cache
def measured(run, alpha: float, eta: float, n: int, runs: int) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard error at one point; every point has its own streams."""
    # one unlucky draw must not show at all points
    first = 10**9 * n + 10**6 * round(10 * alpha) + 10**4 * round(10 * (eta + 5.0))
    return average(run, Ensemble(eta, 10.0), n, round(alpha * n), range(first, first + runs))


def pulls(
    learner, run, alpha: float, eta: float, n: int, runs: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Theory, mean of the runs, and their distance in standard errors."""
    s = theory.solve(learner, Ensemble(eta, 10.0), alpha)
    predicted = np.array([s.R, s.Q, s.free_energy] + ([s.Q_hat] if s.Q_hat is not None else []))
    mean, error = measured(run, alpha, eta, n, runs)
    return predicted, mean, (mean - predicted) / error


def test_small_runs_tell_exact_from_printed_soft_selection() -> None:
    _, _, exact = pulls(theory.SoftSelection(), soft_run, 1.0, 0.0, 200, 120)
    _, _, printed = pulls(theory.SoftSelection("printed"), soft_run, 1.0, 0.0, 200, 120)
    assert np.abs(exact).max() < 3.0
    assert np.abs(printed).max() > 3.5  # the same test rejects the printed equations


def test_small_runs_tell_exact_from_printed_hard_selection() -> None:
    _, _, exact = pulls(theory.HardSelection(), hard_run, 5.0, 0.0, 100, 80)
    _, _, printed = pulls(theory.HardSelection("printed"), hard_run, 5.0, 0.0, 100, 80)
    assert np.abs(exact).max() < 3.0
    assert np.abs(printed).max() > 4.0


@pytest.mark.slow
@pytest.mark.parametrize(("alpha", "eta", "n", "runs"), SOFT)
def test_soft_selection_agrees_with_runs(alpha: float, eta: float, n: int, runs: int) -> None:
    _, _, distance = pulls(theory.SoftSelection(), soft_run, alpha, eta, n, runs)
    assert np.abs(distance).max() < 3.0


@pytest.mark.slow
@pytest.mark.parametrize(("alpha", "eta", "n", "runs"), HARD)
def test_hard_selection_agrees_with_runs(alpha: float, eta: float, n: int, runs: int) -> None:
    _, _, distance = pulls(theory.HardSelection(), hard_run, alpha, eta, n, runs)
    assert np.abs(distance).max() < 3.0
