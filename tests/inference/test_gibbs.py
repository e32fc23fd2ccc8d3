"""Sampling: exact on what can be counted, and in agreement with message passing."""

import itertools

import numpy as np
import pytest
from scipy.special import expit

from outlearn.exceptions import DataError, ParameterError
from outlearn.inference.amp import amp
from outlearn.inference.chains import effective_sample_size, r_hat
from outlearn.inference.gibbs import GibbsStatus, gibbs
from outlearn.inference.prior import SelectionPrior
from outlearn.model import Ensemble, sample


def count_posterior(Y, prior, noise, tau2, repeats=None):
    """Posterior of every V and of the centre by summing over all assignments."""
    p, n = Y.shape
    values, weights = np.array(prior.values), np.array(prior.weights)
    logs, choices, centers, seconds = [], [], [], []
    for choice in itertools.product(range(values.size), repeat=p):
        v = values[list(choice)]
        W, precision = v @ Y / noise, 1 / tau2 + v @ v / noise
        logs.append(np.log(weights[list(choice)]).sum() - n / 2 * np.log(precision) + W @ W / (2 * precision))
        choices.append([[c == k for k in range(values.size)] for c in choice])
        centers.append(W / precision)
        seconds.append((W / precision) ** 2 + 1 / precision)
    w = np.exp(np.array(logs) - np.logaddexp.reduce(logs))
    center = w @ np.array(centers)
    std = np.sqrt(w @ np.array(seconds) - center**2)
    return np.einsum("c,cpk->pk", w, np.array(choices, dtype=float)), center, std


def tiny(seed, p, n=4, noise=0.5, prior=None):
    rng = np.random.default_rng(seed)
    prior = prior or SelectionPrior.of(0.4)
    c = rng.normal(size=n)
    v = rng.choice(prior.values, p=prior.weights, size=p)
    return np.outer(v, c) + rng.normal(size=(p, n)) * np.sqrt(noise), prior


@pytest.mark.parametrize(
    ("prior", "p", "n_temperatures"),
    [
        (SelectionPrior.of(0.4), 8, 1),
        (SelectionPrior.of(0.4), 8, 3),
        (SelectionPrior((0.5, 2.0), (0.6, 0.4)), 7, 1),
        (SelectionPrior.of(0.3, 0.2), 6, 4),  # flipped labels: two modes, a single chain is told not to mix
    ],
)
def test_exact_where_all_assignments_can_be_counted(prior, p, n_temperatures):
    Y, prior = tiny(1, p, prior=prior)
    W, center, std = count_posterior(Y, prior, 0.5, 1.0)
    found = gibbs(
        Y,
        selection=prior,
        noise_variance=0.5,
        center_variance=1.0,
        n_chains=8,
        n_draws=2400,
        n_temperatures=n_temperatures,
        rng=0,
    )
    assert found.status is GibbsStatus.MIXED, found
    assert found.center_error.max() < 0.05
    assert np.abs(found.center - center).max() < 4.5 * found.center_error.max()
    inlier = W[:, np.array(prior.values) != 0].sum(axis=1)
    assert (np.abs(found.inlier_proba - inlier) < 4.5 * found.inlier_proba_error + 1e-3).all()
    assert found.inlier_proba_error.max() < 0.01
    np.testing.assert_allclose(found.posterior, W, atol=0.03)
    np.testing.assert_allclose(found.center_std, std, rtol=0.05)
    if n_temperatures > 1:
        assert 0.2 < found.swap_rate <= 1.0
    # It can fail: the neighbouring parameters' posterior is told apart.
    other = count_posterior(Y, prior, 0.6, 1.0)[2]
    assert not np.allclose(found.center_std, other, rtol=0.05)


def test_copies_of_examples_are_sampled_one_by_one():
    Y, prior = tiny(3, 4)
    counts = np.array([2, 0, 3, 1])
    W, center, _ = count_posterior(np.repeat(Y, counts, axis=0), prior, 3.0, 1.0)
    found = gibbs(
        Y,
        selection=prior,
        noise_variance=3.0,
        center_variance=1.0,
        sample_weight=counts,
        n_chains=8,
        n_draws=1600,
        rng=0,
    )
    assert found.center_error.max() < 0.05
    assert np.abs(found.center - center).max() < 4.5 * found.center_error.max()
    np.testing.assert_allclose(found.inlier_proba[[0, 2, 3]], W[[0, 2, 5], 1], atol=0.02)
    with pytest.raises(DataError, match="whole numbers"):
        gibbs(Y, noise_variance=0.5, sample_weight=[0.5, 1, 1, 1])
    with pytest.raises(DataError, match=r"below 2\^31"):
        gibbs(Y, noise_variance=0.5, sample_weight=[1e12, 1, 1, 1])
    many = gibbs(Y, noise_variance=0.5, sample_weight=[10**6, 1, 1, 1], n_draws=40, rng=0)
    assert np.isfinite(many.center).all()


@pytest.mark.parametrize("seed", range(3))
def test_message_passing_and_sampling_agree(seed):
    """Run by run at N = 200: the posterior means differ by no more than the sampling error plus 1/N."""
    n = 200
    data = sample(Ensemble(1.0, 10.0), n, 3 * n, rng=seed)
    settings = {"contamination": float(expit(1.0)), "noise_variance": 0.1}
    passed = amp(data.X, data.y, **settings)
    found = gibbs(data.X, data.y, n_draws=600, burn_in=100, rng=seed, **settings)
    assert passed.converged
    assert found.converged
    z = (passed.center - found.center) / found.center_error
    assert np.mean(z**2) < 2.0
    # 10 % off in the length of the centre is seen.
    assert np.mean(((1.1 * passed.center - found.center) / found.center_error) ** 2) > 2.5
    assert np.abs(passed.inlier_proba - found.inlier_proba).mean() < 0.01
    np.testing.assert_allclose(passed.center_std.mean(), found.center_std.mean(), rtol=0.02)


def test_parameters_are_sampled_with_the_rest():
    n, p = 50, 1500
    data = sample(Ensemble(0.5, 10.0), n, p, rng=1)
    found = gibbs(
        data.X,
        data.y,
        contamination=0.3,
        noise_variance=0.3,
        center_variance=5.0 / n,
        learn=("contamination", "noise_variance", "center_variance"),
        n_draws=400,
        rng=1,
    )
    assert found.converged
    truth = {
        "contamination": 1 - data.informative.mean(),
        "noise_variance": 0.1,
        "center_variance": 1.0 / n,
    }
    for name, value in truth.items():
        trace = found.monitors[name]
        assert abs(trace.mean() - value) < 4 * trace.std(), name
        assert trace.std() < 0.4 * value
    table = found.to_frame().set_index("quantity")
    assert (table["r_hat"] < 1.05).all()
    assert "mixed" in repr(found)
    assert found.to_dict()["status"] == "MIXED"


def test_tempering_crosses_between_two_modes():
    """Two directions explain the data equally well: a single chain stays, tempered ones go over."""
    rng = np.random.default_rng(0)
    n, p = 2, 30
    side = np.repeat([1.0, -1.0], p)
    Y = np.outer(side, [1.0, 0.0]) + np.array([0.0, 0.4]) + 0.35 * rng.normal(size=(2 * p, n))
    Y[p:] = Y[:p] * [-1.0, 1.0]
    settings = {"contamination": 0.5, "noise_variance": 0.15, "center_variance": 1.0, "n_chains": 4}
    stuck = gibbs(Y, init=np.array([1.0, 0.4]), burn_in=0, n_draws=400, rng=0, **settings)
    assert stuck.center[0] > 0.7
    tempered = gibbs(
        Y,
        init=np.array([1.0, 0.4]),
        burn_in=200,
        n_draws=3000,
        n_temperatures=8,
        hottest=0.03,
        rng=0,
        **settings,
    )
    assert abs(tempered.center[0]) < 0.25
    assert abs(tempered.center[1] - stuck.center[1]) < 0.2


def test_same_seed_same_draws_and_one_read_a_sweep():
    data = sample(Ensemble(0.0, 10.0), 10, 60, rng=0)
    settings = {"contamination": 0.5, "noise_variance": 0.1, "n_draws": 64, "burn_in": 10}
    one = gibbs(data.X, data.y, rng=3, **settings)
    two = gibbs(data.X, data.y, rng=3, n_threads=2, **settings)
    assert np.array_equal(one.center, two.center)
    assert one.n_reads == 74
    assert not np.array_equal(one.center, gibbs(data.X, data.y, rng=4, **settings).center)


def test_chains_that_disagree_are_not_believed():
    rng = np.random.default_rng(0)
    iid = rng.normal(size=(4, 400))
    assert r_hat(iid) < 1.02
    assert r_hat(iid * np.array([1, 1, 1, 4])[:, None]) > 1.05  # scale
    assert r_hat(np.linspace(0, 3, 400) + iid) > 1.2  # drift
    slow = np.zeros((4, 2000))
    for t in range(1, 2000):
        slow[:, t] = 0.9 * slow[:, t - 1] + rng.normal(size=4)
    assert effective_sample_size(slow) == pytest.approx(8000 * 0.1 / 1.9, rel=0.35)
    assert effective_sample_size(np.ones((2, 10))) == 20.0
    short = gibbs(*_hard_problem(), contamination=0.95, noise_variance=0.1, n_draws=40, burn_in=0, rng=0)
    assert not short.converged
    assert "not mixed" in repr(short)


def _hard_problem():
    data = sample(Ensemble(3.0, 10.0), 50, 800, rng=0)
    return data.X, data.y


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_chains": 0}, "n_chains"),
        ({"n_draws": 3}, "n_draws"),
        ({"n_temperatures": 1.5}, "n_temperatures"),
        ({"hottest": 0.0}, "hottest"),
        ({"hottest": "hot"}, "hottest"),
        ({"rng": "seed"}, "rng"),
        ({"init": "hebb"}, "init"),
        ({"contamination": 1.2}, "contamination"),
        ({"noise_variance": -1.0}, "noise_variance"),
    ],
)
def test_sampler_names_what_is_wrong(change, message):
    data = sample(Ensemble(0.0, 10.0), 4, 10, rng=0)
    with pytest.raises(ParameterError, match=message):
        gibbs(data.X, data.y, **({"noise_variance": 0.1} | change))
