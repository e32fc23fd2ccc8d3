"""Predictions: the theory's own numbers, monotone in what makes learning harder, and kept by runs."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression

from outlearn.exceptions import ParameterError
from outlearn.model import Ensemble, angle, sample
from outlearn.practice.effective import estimate_ensemble
from outlearn.practice.folding import fold
from outlearn.practice.predictions import LEARNERS, World, angle_of, cosines, log_tan, predict_errors
from outlearn.theory import Hebb, SoftSelection, solve


def world(**changes):
    return World(**({"contamination": 0.6, "label_noise": 0.0, "gamma": 8.0, "n_features": 200} | changes))


def test_hebb_and_soft_are_those_of_the_theory():
    e = Ensemble.from_contamination(0.6, gamma=8.0)
    for name, learner in (("hebb", Hebb()), ("soft", SoftSelection())):
        assert cosines(name, world(), [4.0])[0][0] == pytest.approx(solve(learner, e, 4.0).overlap, rel=1e-8)


@pytest.mark.parametrize("learner", list(LEARNERS))
def test_more_garbage_and_wrong_labels_never_help_and_nobody_beats_bayes(learner):
    plain = cosines(learner, world(), [5.0])[0][0]
    assert cosines(learner, world(contamination=0.75), [5.0])[0][0] < plain
    assert cosines(learner, world(label_noise=0.1), [5.0])[0][0] < plain
    for changes in ({}, {"label_noise": 0.1}, {"contamination": 0.0}):
        assert (
            cosines(learner, world(**changes), [5.0])[0]
            <= cosines("bayes", world(**changes), [5.0])[0] + 1e-9
        )


def measured(learner, seed, w, p):
    data = sample(Ensemble.from_contamination(w.contamination, gamma=w.gamma), w.n_features, p, seed)
    flip = (np.random.default_rng(seed).random(p) < w.label_noise) & data.informative
    y = np.where(flip, -data.y, data.y)
    if learner == "hebb":
        J = y @ data.X
    elif learner == "lda":
        J = LinearDiscriminantAnalysis().fit(data.X, y).coef_.ravel()
    else:
        scaled = data.X * np.sqrt(w.gamma)
        J = LogisticRegression(C=1.0, fit_intercept=False).fit(scaled, y).coef_.ravel()
    B = data.center
    return float(log_tan(np.cos(np.pi * angle(J @ B / np.sqrt(B @ B), J @ J))))


@pytest.mark.parametrize("learner", ["hebb", "logistic", "lda"])
def test_plain_classifiers_do_what_is_predicted_wrong_labels_included(learner):
    w = world(label_noise=0.1, n_features=150)
    runs = [measured(learner, seed, w, 900) for seed in range(8)]
    expected = float(log_tan(cosines(learner, w, [6.0])[0][0]))
    assert np.mean(runs) == pytest.approx(expected, abs=3 * np.std(runs, ddof=1) / np.sqrt(8) + 0.01)


def test_the_scatter_at_finite_size_is_that_of_the_formula():
    from outlearn.practice.predictions import finite_size_variance

    w = world(n_features=60, contamination=0.0)
    runs = np.array([measured("hebb", seed, w, 120) for seed in range(300)])
    ratio = runs.var(ddof=1) / float(finite_size_variance(runs.mean(), 60))
    assert 0.8 < ratio < 1.25  # the standard deviation of a variance from 300 runs is 8 %


def test_intervals_contain_their_value_and_shrink_with_data():
    def width(p):
        data = sample(Ensemble.from_contamination(0.6, gamma=8.0), 60, p, 0)
        found = predict_errors(
            estimate_ensemble(fold(data.X, data.y, structure="spherical")), learners=("bayes", "hebb")
        )
        for prediction in found:
            for e in (prediction.direction_error, prediction.test_error):
                assert e.low < e.value < e.high
        assert found[0].learner == "bayes"
        e = found[0].direction_error
        return np.log(e.high / e.low)

    assert width(2400) < width(300)


def test_angles_and_their_tangents():
    c = np.array([0.1, 0.7, 0.999])
    np.testing.assert_allclose(angle_of(log_tan(c)), np.arccos(c) / np.pi, rtol=1e-10)


def test_unknown_learner():
    with pytest.raises(ParameterError, match="learner"):
        cosines("oracle", world(), [1.0])


def test_the_midpoint_of_unequal_classes_costs_what_the_balance_says():
    rng, n, p = np.random.default_rng(0), 50, 200
    truth, y = np.ones(n) / np.sqrt(n), np.where(np.arange(p) < 20, 1, -1)
    found = []
    for _ in range(200):
        good = rng.random(p) < 0.5
        X = (y * good)[:, None] * truth + rng.standard_normal((p, n)) / np.sqrt(8.0)
        J = X[y > 0].mean(axis=0) - X[y < 0].mean(axis=0)
        found.append(log_tan(J @ truth / np.linalg.norm(J)))
    world = World(contamination=0.5, label_noise=0.0, gamma=8.0, n_features=n, balance=4 * 0.1 * 0.9)
    expected = log_tan(cosines("hebb", world, [4.0])[0][0])
    assert np.mean(found) == pytest.approx(expected, abs=4 * np.std(found) / np.sqrt(200))
