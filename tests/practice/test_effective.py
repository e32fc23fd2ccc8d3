"""Estimates of the effective ensemble: near the truth, and intervals that hold it as often as they say."""

from __future__ import annotations

import numpy as np
import pytest

from outlearn.model import Ensemble, sample
from outlearn.practice.effective import estimate_ensemble
from outlearn.practice.folding import fold


def estimate(contamination, gamma, n, p, seed, label_noise=0.0, **options):
    data = sample(Ensemble.from_contamination(contamination, gamma=gamma), n, p, seed)
    flip = (np.random.default_rng(seed).random(p) < label_noise) & data.informative
    return estimate_ensemble(fold(data.X, np.where(flip, -data.y, data.y), **options))


def test_all_parameters_are_found():
    e = estimate(0.7, 8.0, 80, 1600, 0, label_noise=0.1)
    assert e.detected
    for name, truth in (
        ("contamination", 0.7),
        ("label_noise", 0.1),
        ("gamma", 8.0),
        ("noise_variance", 0.125),
    ):
        found = getattr(e, name)
        half = 0.5 * (found.high - found.low)
        assert abs(found.value - truth) < 2.5 * half, name
        assert half < 0.4 * truth, name
    assert e.alpha == 20.0
    assert e.eta.value == pytest.approx(np.log(e.contamination.value / (1 - e.contamination.value)))
    assert e.ensemble.gamma == e.gamma.value


def test_gamma_is_the_signal_and_not_the_length_of_the_estimate():
    # with P = N the raw length of Hebb's mean is mostly noise
    e = estimate(0.5, 5.0, 300, 300, 1)
    assert 5.0 in e.gamma
    assert e.gamma.high < 12.0


def coverage(runs, **world):
    inside = {"contamination": 0, "gamma": 0}
    for seed in range(runs):
        e = estimate(seed=seed + 100, **world)
        inside["contamination"] += world["contamination"] in e.contamination
        inside["gamma"] += world["gamma"] in e.gamma
    return {name: count / runs for name, count in inside.items()}


def test_intervals_cover():
    found = coverage(24, contamination=0.8, gamma=8.0, n=60, p=600, structure="spherical")
    # 24 draws at 0.9: fewer than 17 happen with probability 0.002
    assert all(share >= 17 / 24 for share in found.values()), found


@pytest.mark.slow
@pytest.mark.parametrize(
    "world",
    [
        {"contamination": 0.8, "gamma": 10.0, "n": 100, "p": 1000},
        {"contamination": 0.5, "gamma": 3.0, "n": 100, "p": 1000},
        {"contamination": 0.9, "gamma": 10.0, "n": 300, "p": 1500},
    ],
    ids=lambda w: f"{w['contamination']}-{w['gamma']}",
)
def test_intervals_cover_at_their_level(world):
    found = coverage(120, **world)
    # binomial at 0.9: 0.83 to 0.97 holds 99 %
    assert all(0.82 <= share <= 0.98 for share in found.values()), found


def test_with_one_feature_the_noise_limits_what_is_known_of_gamma():
    y = np.arange(60) % 2
    found = [
        estimate_ensemble(fold(np.random.default_rng(seed).standard_normal((60, 1)) + 6.0 * y[:, None], y))
        for seed in range(20)
    ]
    # 17 of 20 of all seeds; without the noise variance's share it would be 9
    assert sum(9.0 in e.gamma for e in found) >= 14
    assert min(np.log(e.gamma.high / e.gamma.low) for e in found) > 0.5


def test_noise_alone_is_not_a_signal():
    rng = np.random.default_rng(0)
    e = estimate_ensemble(fold(rng.standard_normal((300, 50)), rng.integers(0, 2, 300)))
    assert not e.detected


def test_no_garbage_is_found_to_be_none():
    e = estimate(0.0, 6.0, 60, 800, 3)
    assert e.contamination.value < 0.03
    assert e.contamination.low < 0.01
    assert e.label_noise.low == pytest.approx(0.0, abs=1e-3)


def test_wrong_labels_that_hide_in_garbage_stay_inside_the_interval():
    e = estimate(0.8, 6.0, 40, 900, 3, label_noise=0.08)
    assert 0.08 in e.label_noise


def test_sigma_points_carry_the_covariance():
    e = estimate(0.6, 6.0, 50, 700, 2)
    points = np.array([[np.arcsin(np.sqrt(c)), np.log(g)] for c, _, g in e.sigma_points()])
    half = 0.5 * (points[1::2] - points[2::2])
    np.testing.assert_allclose(half.T @ half, e.covariance[np.ix_([0, 2], [0, 2])], rtol=1e-5)


def by_a_coin(X, seed):
    """Fold inputs with labels that have nothing to do with them."""
    y = np.random.default_rng(seed).integers(0, 2, len(X))
    return estimate_ensemble(fold(X, y, structure="spherical"))


def test_groups_in_the_inputs_are_no_signal_if_labels_do_not_know_them():
    data = sample(Ensemble.from_contamination(0.0, gamma=10.0), 20, 300, 0)
    found = by_a_coin(data.X, 1)
    assert found.evidence > 100.0
    assert found.label_evidence < 3.0
    assert not found.detected
    assert found.label_noise.high <= 0.5
    assert estimate_ensemble(fold(data.X, data.y)).detected


@pytest.mark.parametrize("seed", range(3))
def test_stray_examples_are_no_signal(seed):
    found = by_a_coin(np.random.default_rng(seed).standard_t(3, size=(300, 20)), seed)
    assert found.evidence > 3.0
    assert not found.detected


def test_noise_with_labels_of_unequal_size_is_no_signal():
    # the error of a midpoint between unequal labels is shared by all examples of a label
    y = np.where(np.arange(150) < 20, 1, -1)
    X = np.random.default_rng(0).standard_normal((150, 100))
    assert not estimate_ensemble(fold(X, y, structure="spherical")).detected


def test_clean_data_leave_it_open_that_there_is_no_garbage():
    e = estimate(0.0, 20.0, 20, 30, 0, structure="spherical")
    assert e.detected
    assert e.contamination.low == 0.0


def test_noise_is_as_well_known_as_the_features_that_carry_it():
    scale = np.exp(np.random.default_rng(1).normal(size=60))
    data = sample(Ensemble.from_contamination(0.3, gamma=10.0), 60, 300, 0)
    folded = fold(data.X * scale, data.y, structure="diag")
    alike = np.sum(scale**2) ** 2 / np.sum(scale**4)
    assert folded.noise_features == pytest.approx(alike, rel=0.05)
    assert np.mean(scale**2) / 10.0 in estimate_ensemble(folded).noise_variance
