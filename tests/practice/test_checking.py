"""The Bayes bound with wrong labels and with checked examples: limits, and runs of message passing."""

from __future__ import annotations

import numpy as np
import pytest

from outlearn.exceptions import ParameterError
from outlearn.model import Ensemble, sample
from outlearn.practice.checking import Knowledge, alpha_for, overlap
from outlearn.theory import BayesOptimal, solve


@pytest.mark.parametrize(("eta", "alpha", "gamma"), [(0.0, 1.0, 10.0), (4.0, 20.0, 10.0), (2.0, 0.1, 3.0)])
def test_without_wrong_labels_or_checks_it_is_the_bayes_bound(eta, alpha, gamma):
    e = Ensemble(eta=eta, gamma=gamma)
    q = overlap(Knowledge(contamination=e.outlier_fraction), alpha=alpha, gamma=gamma)
    assert q == pytest.approx(solve(BayesOptimal(), e, alpha).R, rel=1e-7)


def test_in_a_hard_phase_it_is_the_root_that_message_passing_reaches():
    e = Ensemble(eta=5.0, gamma=10.0)
    q = overlap(Knowledge(contamination=e.outlier_fraction), alpha=66.0, gamma=10.0)
    assert q == pytest.approx(solve(BayesOptimal(), e, 66.0, branch="uninformative").R, rel=1e-6)


@pytest.mark.parametrize("order", ["random", "doubtful"])
def test_everything_checked_is_the_supervised_limit(order):
    world = Knowledge(contamination=0.7, label_noise=0.1)
    q = overlap(world, alpha=2.0, gamma=5.0, checked=1.0, order=order)
    strength = 2.0 * 5.0 * 0.3
    assert q == pytest.approx(strength / (1.0 + strength))


def test_the_most_doubtful_tell_more_than_a_random_share_and_both_meet_at_the_ends():
    world = Knowledge(contamination=0.8, label_noise=0.05)
    before = overlap(world, alpha=5.0, gamma=6.0)
    shares = (0.02, 0.1, 0.3, 0.7)
    random = [overlap(world, alpha=5.0, gamma=6.0, checked=s) for s in shares]
    doubtful = [overlap(world, alpha=5.0, gamma=6.0, checked=s, order="doubtful") for s in shares]
    assert before < random[0]
    assert np.all(np.diff(random) > 0)
    assert np.all(np.diff(doubtful) >= -1e-6)
    assert np.all(np.array(doubtful) > np.array(random))
    tiny = overlap(world, alpha=5.0, gamma=6.0, checked=1e-6, order="doubtful")
    assert tiny == pytest.approx(before, abs=1e-4)


def test_alpha_for_is_the_inverse():
    world = Knowledge(contamination=0.8, label_noise=0.1)
    q = overlap(world, alpha=3.0, gamma=7.0)
    assert alpha_for(world, q, 7.0) == pytest.approx(3.0, rel=1e-6)


def posterior_overlap(data, values, world, gamma, known):
    """Message passing with some V known: the measured cosine squared."""
    p, n = data.X.shape
    X = data.X * data.y[:, None] if values is None else data.X * values[1][:, None]
    m, s, u_old = np.zeros(n), 1.0, np.zeros(p)
    for _ in range(60):
        b = gamma * (X @ m - s * u_old)
        u, variance = world.beliefs(b, gamma * float(m @ m))
        u, variance = np.where(known >= -1, known, u), np.where(known >= -1, 0.0, variance)
        a, onsager = gamma * float(u @ u) / n, gamma * variance.sum() / n
        m, s, u_old = (gamma * (X.T @ u) - onsager * n * m) / (n * (1.0 + a)), 1.0 / (1.0 + a), u
    B = data.center / np.sqrt(n)
    return float(m @ B) ** 2 / float(m @ m), b, u_old


@pytest.mark.parametrize("order", ["random", "doubtful"])
def test_checked_examples_help_message_passing_as_the_equation_says(order):
    gamma, n, p, share = 8.0, 400, 1600, 0.5 if order == "random" else 0.15
    e = Ensemble.from_contamination(0.85, gamma=gamma)
    world = Knowledge(contamination=0.85)
    measured = []
    for seed in range(6):
        data = sample(e, n, p, seed)
        known = np.full(p, -9.0)
        if order == "random":
            chosen = np.random.default_rng(seed).choice(p, round(share * p), replace=False)
        else:
            _, _, u = posterior_overlap(data, None, world, gamma, known)
            chosen = np.argsort(-(u * (1 - u)))[: round(share * p)]
        known[chosen] = data.informative[chosen]
        measured.append(posterior_overlap(data, None, world, gamma, known)[0])
    expected = overlap(world, alpha=p / n, gamma=gamma, checked=share, order=order)
    without = overlap(world, alpha=p / n, gamma=gamma)
    error = np.std(measured, ddof=1) / np.sqrt(len(measured))
    # at finite N the cosine squared is below q by about (1-q)/N
    assert np.mean(measured) == pytest.approx(expected, abs=3 * error + 2.0 / n)
    assert expected - without > 3 * error + 2.0 / n, "the test could not tell checking from not checking"


@pytest.mark.parametrize(
    "wrong", [{"checked": 1.5}, {"checked": -0.1}, {"order": "alphabetical"}], ids=lambda w: str(w)
)
def test_bad_arguments(wrong):
    with pytest.raises(ParameterError, match=next(iter(wrong))):
        overlap(Knowledge(contamination=0.5), alpha=1.0, gamma=1.0, **wrong)
