"""Message passing reaches the Bayes-optimal error of the theory, and MAP does not."""

import numpy as np
import pytest
from scipy.special import expit

from outlearn.inference.amp import amp
from outlearn.inference.hard import hard_em
from outlearn.inference.soft import soft_em
from outlearn.model import Ensemble, overlaps, sample
from outlearn.theory import state_evolution
from outlearn.theory.bayes import bound

GAMMA, ALPHA = 10.0, 20


def optimal(eta):
    q = bound([ALPHA], [eta], GAMMA)["optimal"][0, 0]
    return float(np.arccos(np.sqrt(q)) / np.pi)


def error(center, data):
    return float(overlaps(center * np.sqrt(data.n_features), data.center).angle)


def runs(eta, n, count, dtype=np.float64):
    for seed in range(count):
        data = sample(Ensemble(eta, GAMMA), n, ALPHA * n, rng=10_000 * int(eta) + seed, dtype=dtype)
        found = amp(data.X, data.y, contamination=float(expit(eta)), noise_variance=1 / GAMMA, tol=1e-4)
        yield data, found


@pytest.mark.parametrize(("eta", "count"), [(0.0, 12), (2.0, 12), (3.0, 12)])
def test_mean_error_is_the_bound(eta, count):
    errors = np.array([error(found.center, data) for data, found in runs(eta, 200, count)])
    spread = errors.std(ddof=1) / np.sqrt(count)
    assert abs(errors.mean() - optimal(eta)) < 3 * spread
    assert spread < 0.05 * optimal(eta)  # a bound 15 % off would be seen


def test_overlap_follows_the_theory_step_by_step():
    eta, n, count, length = 2.0, 300, 6, 6
    theory = state_evolution(Ensemble(eta, GAMMA), 5.0)
    q = np.asarray(theory.q)[:length]
    R = np.zeros((count, length))
    for seed in range(count):
        data = sample(Ensemble(eta, GAMMA), n, 5 * n, rng=seed)
        path = []
        amp(
            data.X,
            data.y,
            contamination=float(expit(eta)),
            noise_variance=1 / GAMMA,
            damping=0.0,
            on_step=path.append,
        )
        R[seed] = [overlaps(c * np.sqrt(n), data.center).R for c in path[:length]]
    spread = R.std(axis=0, ddof=1) / np.sqrt(count)
    assert (np.abs(R.mean(axis=0) - q) < 3.5 * spread + 3.0 / n).all()
    assert (np.diff(q[:4]) > 0.02).all()


def test_start_by_message_passing_brings_hard_selection_to_its_informative_branch():
    data = sample(Ensemble(3.5, GAMMA), 200, ALPHA * 200, rng=1)
    settings = {"contamination": float(expit(3.5)), "noise_variance": 1 / GAMMA}
    begun = hard_em(data.X, data.y, init="amp", **settings)
    lost = hard_em(data.X, data.y, init="hebb", **settings)
    assert error(begun.center, data) < 0.22
    assert begun.energy < lost.energy - 10.0
    assert error(lost.center, data) > 0.4
    soft = soft_em(data.X, data.y, init="amp", **settings)
    assert soft.converged


@pytest.mark.slow
@pytest.mark.parametrize(("eta", "n"), [(0.0, 2000), (2.0, 2000), (3.0, 2000)])
def test_bound_at_two_thousand_dimensions(eta, n):
    errors = np.array([error(found.center, data) for data, found in runs(eta, n, 20, np.float32)])
    assert abs(errors.mean() - optimal(eta)) < 3 * errors.std(ddof=1) / np.sqrt(20)


@pytest.mark.slow
def test_near_the_threshold_the_bound_is_the_limit_of_large_dimensions():
    """At eta = 4 the mean error carries a finite-size shift; extrapolated in 1/N it ends at 0.2369."""
    sizes, means, spreads = np.array([500, 1000, 2000]), [], []
    for n, count in zip(sizes, (40, 30, 20), strict=True):
        errors = np.array([error(found.center, data) for data, found in runs(4.0, n, count, np.float32)])
        means.append(errors.mean())
        spreads.append(errors.std(ddof=1) / np.sqrt(count))
    design = np.column_stack([np.ones(3), 1.0 / sizes]) / np.array(spreads)[:, None]
    covariance = np.linalg.inv(design.T @ design)
    limit = (covariance @ design.T @ (np.array(means) / spreads))[0]
    assert abs(limit - optimal(4.0)) < 3 * np.sqrt(covariance[0, 0])
    assert optimal(4.0) == pytest.approx(0.2369, abs=1e-4)
