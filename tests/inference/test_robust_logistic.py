"""Garbage-aware logistic regression: its gradient, its limits, and what it is for."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from outlearn.inference.folds import folds
from outlearn.inference.pooling import behind, calibrate, looks_spherical, steady_weights
from outlearn.inference.robust_logistic import label_loss, robust_logistic, tuned_robust_logistic


def _draw(n_classes=2, n=6, p=400, coins=0.0, seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, n_classes, p)
    X = 1.2 * rng.standard_normal((n_classes, n))[labels] + rng.standard_normal((p, n))
    noisy = np.where(rng.random(p) < coins, rng.integers(0, n_classes, p), labels)
    return X, labels.astype(np.intp), noisy.astype(np.intp)


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("share", [0.0, 0.3])
def test_the_slope_of_the_loss_is_its_derivative(n_classes, share):
    rng = np.random.default_rng(1)
    columns = 1 if n_classes == 2 else n_classes
    scores, labels = rng.standard_normal((7, columns)) * 3, rng.integers(0, n_classes, 7)
    loss, slope = label_loss(scores, labels, share)
    for j in range(columns):
        step = np.zeros(columns)
        step[j] = 1e-6
        up, down = label_loss(scores + step, labels, share)[0], label_loss(scores - step, labels, share)[0]
        np.testing.assert_allclose(slope[:, j], (up - down) / 2e-6, atol=1e-8)
    full = np.hstack([np.zeros_like(scores), scores]) if columns == 1 else scores
    softmax = np.exp(full) / np.exp(full).sum(axis=1, keepdims=True)
    direct = (1 - share) * softmax[np.arange(7), labels] + share / n_classes
    np.testing.assert_allclose(loss, -np.log(direct), rtol=1e-10)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_without_garbage_it_is_logistic_regression(n_classes):
    X, _, labels = _draw(n_classes, coins=0.2)
    weights = np.random.default_rng(2).integers(1, 4, len(X)).astype(float)
    ours = robust_logistic(X, labels, n_classes, penalty=5.0, sample_weight=weights, tol=1e-9)
    theirs = LogisticRegression(C=0.2, tol=1e-9, max_iter=1000).fit(X, labels, weights)
    np.testing.assert_allclose(ours.coef, theirs.coef_, atol=1e-5)
    expected = theirs.intercept_ - (theirs.intercept_.mean() if n_classes > 2 else 0.0)
    np.testing.assert_allclose(ours.intercept, expected, atol=1e-5)
    np.testing.assert_allclose(np.exp(ours.log_label_proba(X)), theirs.predict_proba(X), atol=1e-5)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_coins_are_found_and_cost_little(n_classes):
    X, true, noisy = _draw(n_classes, p=1500, coins=0.5)
    tuned = tuned_robust_logistic(X, noisy, n_classes, folds(X, noisy, 5))
    assert 0.25 <= tuned.fit.contamination <= 0.65
    plain = robust_logistic(X, true, n_classes, penalty=1.0)

    def accuracy(fit):
        scores = fit.scores(X)
        guess = (scores[:, 0] > 0) if n_classes == 2 else scores.argmax(axis=1)
        return (guess == true).mean()

    assert accuracy(tuned.fit) > accuracy(plain) - 0.02
    inlier = tuned.fit.inlier_proba(X, noisy)
    assert inlier[noisy == true].mean() > 3 * inlier[noisy != true].mean()


def test_more_features_than_examples_take_the_span():
    X, _, labels = _draw(n=300, p=60)
    fold = folds(X, labels, 3)
    tuned = tuned_robust_logistic(X, labels, 2, fold)
    direct = robust_logistic(
        X, labels, 2, contamination=tuned.fit.contamination, penalty=tuned.fit.penalty, tol=1e-10
    )
    np.testing.assert_allclose(tuned.fit.coef, direct.coef, atol=1e-4 * np.abs(direct.coef).max())
    for f in range(3):  # held-out scores come from fits that did not see the example
        rest = fold != f
        part = robust_logistic(
            X[rest], labels[rest], 2, contamination=tuned.fit.contamination, penalty=tuned.fit.penalty
        )
        expected = part.scores(X[~rest])
        np.testing.assert_allclose(tuned.held_out[~rest], expected, atol=0.05 * np.abs(expected).max())


def test_calibration_finds_slope_and_contamination():
    rng = np.random.default_rng(3)
    scores = 2.0 * rng.standard_normal((40000, 1))
    truth = rng.random(40000) < 1 / (1 + np.exp(-1.5 * scores[:, 0]))
    labels = np.where(rng.random(40000) < 0.4, rng.random(40000) < 0.5, truth).astype(np.intp)
    found = calibrate(scores, labels, np.ones(40000))
    assert found.slope == pytest.approx(1.5, rel=0.1)
    assert found.contamination == pytest.approx(0.4, abs=0.03)
    np.testing.assert_allclose(
        found.log_proba, -label_loss(found.slope * scores + found.offset, labels, found.contamination)[0]
    )


def test_calibration_knows_that_outliers_may_have_unequal_labels():
    rng = np.random.default_rng(3)
    scores = 2.0 * rng.standard_normal((40000, 1)) + 3.0
    truth = rng.random(40000) < 1 / (1 + np.exp(-scores[:, 0]))
    garbage = rng.random(40000) < 0.6
    for share, expected in ((truth.mean(), truth.mean()), (0.5, 0.5)):
        labels = np.where(garbage, rng.random(40000) < share, truth).astype(np.intp)
        found = calibrate(scores, labels, np.ones(40000))
        assert found.coin[1] == pytest.approx(expected, abs=0.01)
        assert found.slope == pytest.approx(1.0, rel=0.1)
        assert found.contamination == pytest.approx(0.6, abs=0.03)


def test_a_threshold_is_moved_only_as_far_as_labels_speak_for_it():
    rng = np.random.default_rng(6)
    scores = rng.standard_normal((2000, 1))
    moved = (rng.random(2000) < 1 / (1 + np.exp(-scores[:, 0] - 1.0))).astype(np.intp)
    found = calibrate(scores, moved, np.ones(2000))
    assert found.offset[0] / found.slope == pytest.approx(1.0, abs=0.2)
    assert calibrate(scores, moved, np.ones(2000), shift=False).offset[0] == 0.0
    kept = 0
    for seed in range(10):  # chance moves it by less than the price in five cases of six
        rng = np.random.default_rng(seed)
        scores = rng.standard_normal((200, 1))
        labels = (rng.random(200) < 1 / (1 + np.exp(-0.3 * scores[:, 0]))).astype(np.intp)
        kept += calibrate(scores, labels, np.ones(200)).offset[0] == 0.0
    assert kept >= 7


def test_weights_follow_what_every_half_says():
    fold = np.arange(500) % 5
    logs = np.full((3, 500), np.log(0.6))
    logs[2] -= 0.5
    logs[0, fold < 2] += 0.3  # rules 0 and 1 take turns, and come out even
    logs[1, fold >= 3] += 0.3
    found = steady_weights(logs, np.ones(500), fold)
    np.testing.assert_allclose(found, [0.5, 0.5, 0.0], atol=1e-6)
    logs[0] += 0.5
    assert steady_weights(logs, np.ones(500), fold)[0] == pytest.approx(1.0)
    assert steady_weights(logs, np.ones(500), np.arange(500) % 40)[0] == pytest.approx(1.0)
    z = behind(logs, np.ones(500))
    assert z[0] == 0.0
    assert z[2] > 3.0


def test_spherical_data_are_told_from_others():
    rng = np.random.default_rng(5)
    for p, n in ((300, 200), (100, 400)):
        X = rng.standard_normal((p, n))
        assert looks_spherical(X, np.zeros(p, dtype=np.intp), np.ones(p))
        assert not looks_spherical(
            X + 1.5 * rng.standard_normal((p, 1)), np.zeros(p, dtype=np.intp), np.ones(p)
        )
