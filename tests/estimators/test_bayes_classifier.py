"""The Bayes-optimal classifier: reaches the bound unaided, survives unsuitable data, obeys scikit-learn."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from outlearn.estimators.bayes import BayesSelectionClassifier
from outlearn.exceptions import ParameterError
from outlearn.model import Ensemble, sample


@parametrize_with_checks([BayesSelectionClassifier(covariance="diag")])
def test_scikit_learn_accepts_it(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        check(estimator)


def direction_error(model, data):
    c = model.centers_[1] - model.centers_[0]
    return np.arccos(c @ data.center / np.linalg.norm(c) / np.linalg.norm(data.center)) / np.pi


@pytest.mark.parametrize("algorithm", ["amp", "gibbs"])
def test_everything_is_learned_from_contaminated_data(algorithm):
    n, p = (60, 1500) if algorithm == "amp" else (20, 500)
    data = sample(Ensemble.from_contamination(0.8, gamma=10.0), n, p, rng=0)
    model = BayesSelectionClassifier(algorithm=algorithm, covariance="spherical", random_state=0)
    model.fit(data.X + 3.0, data.y)
    assert model.algorithm_ == algorithm
    assert model.contamination_ == pytest.approx(1 - data.informative.mean(), abs=0.04)
    assert model.noise_variance_ == pytest.approx(0.1, rel=0.03)
    assert model.center_variance_ == pytest.approx(1 / n, rel=0.6)
    assert direction_error(model, data) < 0.1
    deviation = (model.centers_[1] - model.centers_[0]) / 2 - data.center / np.sqrt(n)
    assert (deviation / model.centers_std_[1]).std() == pytest.approx(1.0, abs=0.4)
    assert model.inlier_proba_[data.informative].mean() > 3 * model.inlier_proba_[~data.informative].mean()
    clean = sample(Ensemble(-np.inf, 10.0), n, 500, rng=1, center=data.center)
    assert model.score(clean.X + 3.0, clean.y) > 0.95


def test_known_parameters_are_kept():
    data = sample(Ensemble.from_contamination(0.5, gamma=10.0), 20, 300, rng=0)
    model = BayesSelectionClassifier(
        0.5, noise_variance=0.1, center_variance=0.05, covariance="spherical", algorithm="amp"
    ).fit(data.X, data.y)
    assert (model.contamination_, model.label_noise_) == (0.5, 0.0)
    assert model.noise_variance_ == pytest.approx(0.1)
    assert model.center_variance_ == pytest.approx(0.05)


def test_wrong_labels_are_told_from_outliers():
    data = sample(Ensemble.from_contamination(0.3, gamma=10.0), 40, 1200, rng=2)
    flipped = np.random.default_rng(0).random(1200) < 0.15
    y = np.where(flipped, -data.y, data.y)
    model = BayesSelectionClassifier(label_noise="auto", covariance="spherical").fit(data.X, y)
    truth = (flipped & data.informative).mean()
    assert model.label_noise_ == pytest.approx(truth, abs=0.03)
    assert model.contamination_ == pytest.approx(0.3, abs=0.05)
    assert model.inlier_proba_[data.informative & flipped].mean() < 0.1


@pytest.mark.parametrize("covariance", ["diag", "tied"])
def test_unequal_noise_is_made_equal(covariance):
    rng = np.random.default_rng(3)
    n, p = 15, 900
    mix = np.diag(np.geomspace(0.1, 10.0, n))
    if covariance == "tied":
        mix = np.diag(np.geomspace(0.5, 2.0, n)) @ np.linalg.qr(rng.normal(size=(n, n)))[0]
    center = rng.normal(size=n) * 0.6
    y, good = rng.choice([0, 1], size=p), rng.random(p) < 0.6
    X = (np.outer(good * (2 * y - 1), center) + rng.normal(size=(p, n))) @ mix
    model = BayesSelectionClassifier(covariance=covariance).fit(X, y)
    found = 0.5 * (model.centers_[1] - model.centers_[0])
    z = (found - center @ mix) / model.centers_std_[1]
    assert 0.4 < np.sqrt(np.mean(z**2)) < 2.0
    assert model.contamination_ == pytest.approx(0.4, abs=0.12)


@pytest.mark.parametrize("load", [load_breast_cancer, load_wine, load_digits])
def test_real_data_unscaled_with_permuted_labels(load):
    X, y = load(return_X_y=True)
    X = X[:, X.std(axis=0) > 0]
    rng = np.random.default_rng(0)
    wrong = np.where(rng.random(y.size) < 0.3, rng.permutation(y), y)
    model = BayesSelectionClassifier(covariance="diag", n_init=1).fit(X, wrong)
    for array in (model.centers_, model.centers_std_, model.inlier_proba_, model.predict_proba(X)):
        assert np.isfinite(array).all()
    assert model.score(X, y) > 0.8
    same = wrong == y
    assert model.inlier_proba_[same].mean() > model.inlier_proba_[~same].mean() + 0.3


@pytest.mark.parametrize("seed", range(2))
def test_heavy_tails_give_a_fit_or_say_so(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_t(1.5, size=(300, 12)) @ rng.normal(size=(12, 12))
    y = np.where(X[:, 0] + rng.standard_t(1.5, size=300) > 0, "a", "b")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = BayesSelectionClassifier(covariance="diag").fit(X, y)
    assert np.isfinite(model.centers_).all()
    assert np.isfinite(model.predict_proba(X)).all()


def test_sampling_takes_over_and_says_so():
    data = sample(Ensemble(1.4, 10.0), 60, 300, rng=0)
    model = BayesSelectionClassifier(covariance="spherical", max_iter=2, random_state=0)
    with pytest.warns(ConvergenceWarning, match="sampled instead"):
        model.fit(data.X, data.y)
    assert model.algorithm_ == "gibbs"
    assert direction_error(model, data) < 0.25


def test_wrong_algorithm_is_named():
    with pytest.raises(ParameterError, match="algorithm"):
        BayesSelectionClassifier(algorithm="vb").fit([[0.0], [1.0]], [0, 1])
    assert not hasattr(BayesSelectionClassifier(), "partial_fit")
