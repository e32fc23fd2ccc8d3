"""The default classifier: close to the best member, honest about who won, obedient to scikit-learn."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegressionCV
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from outlearn import AutoSelectionClassifier, Ensemble, HebbClassifier, load, sample, save
from outlearn.exceptions import DataError, ParameterError
from outlearn.model import overlaps

FAST = ("hebb", "logistic", "robust logistic")


@pytest.mark.filterwarnings("ignore")
def test_keeps_the_contract_of_scikit_learn():
    one_of_each_kind = ("hebb", "lda", "logistic")  # robust logistic is the same code with more to tune
    for result in check_estimator(AutoSelectionClassifier(members=one_of_each_kind, n_folds=2), on_skip=None):
        assert result["status"] == "passed" or result["check_name"] == "check_array_api_input", result


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_keeps_the_contract_with_all_members():
    for result in check_estimator(AutoSelectionClassifier(), on_skip=None):
        assert result["status"] == "passed" or result["check_name"] == "check_array_api_input", result


def _angles(n, alpha, eps, seeds):
    out = []
    for seed in range(seeds):
        data = sample(Ensemble.from_contamination(eps, gamma=10.0), n, int(alpha * n), rng=seed)
        auto = AutoSelectionClassifier(random_state=0).fit(data.X, data.y)
        hebb = HebbClassifier().fit(data.X, data.y)
        out.append([overlaps(m.coef_[0], data.center).angle for m in (auto, hebb)])
        if eps > 0.9:  # labels say nothing there
            assert auto.winner_ == "bayes"
    return np.mean(out, axis=0)


def test_unequal_classes_among_outliers_too_do_not_mislead_the_comparison():
    # nine in ten labels are of one class, whether they mean anything or not
    rng = np.random.default_rng(0)
    n, p = 10, 300
    center = rng.standard_normal(n)
    center /= np.linalg.norm(center)
    y = np.where(rng.random(p) < 0.9, 1, -1)
    informative = rng.random(p) < 0.5
    X = np.sqrt(0.1) * rng.standard_normal((p, n)) + np.outer(y * informative, center)
    model = AutoSelectionClassifier(random_state=0).fit(X, y)
    assert model.winner_ in {"soft", "bayes"}
    assert model.contamination_ == pytest.approx(0.5, abs=0.1)
    truth = rng.choice([-1, 1], 2000)
    fresh = np.sqrt(0.1) * rng.standard_normal((2000, n)) + np.outer(truth, center)
    assert model.score(fresh, truth) > 0.98


@pytest.mark.parametrize(("n", "alpha", "eps"), [(200, 3, 0.95), (200, 1, 0.9)])
def test_is_never_worse_than_hebb_at_the_transition(n, alpha, eps):
    auto, hebb = _angles(n, alpha, eps, 3)
    assert auto <= hebb + 0.005


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "alpha", "eps"), [(400, 1, 0.95), (400, 2, 0.95), (300, 2, 0.9), (300, 3, 0.9), (400, 1, 0.9)]
)
def test_is_never_worse_than_hebb_at_low_alpha(n, alpha, eps):
    auto, hebb = _angles(n, alpha, eps, 6)
    assert auto <= hebb + 0.005


def test_selects_on_data_of_the_model():
    data = sample(Ensemble.from_contamination(0.8, gamma=10.0), 60, 1200, rng=1)
    model = AutoSelectionClassifier(random_state=0).fit(3.0 * data.X + 1.0, data.y)
    assert model.winner_ in ("soft", "bayes")
    assert model.contamination_ == pytest.approx(0.8, abs=0.04)
    error = overlaps(model.coef_[0], data.center).angle
    assert error < 0.6 * overlaps(HebbClassifier().fit(data.X, data.y).coef_[0], data.center).angle
    assert roc_auc_score(data.informative, model.inlier_proba_) > 0.9
    fresh = model.inlier_proba(3.0 * data.X + 1.0, data.y)
    np.testing.assert_allclose(fresh, model.inlier_proba_, atol=0.15)


def _breast_cancer(coins, seed=0):
    X, y = load_breast_cancer(return_X_y=True)
    X, T, y, t = train_test_split(X, y, test_size=1 / 3, stratify=y, random_state=seed)
    rng = np.random.default_rng(seed)
    noisy = np.where(rng.random(len(y)) < coins, rng.integers(0, 2, len(y)), y)
    return X, y, noisy, T, t


def test_costs_nothing_on_clean_data_and_stands_noise():
    ours, theirs = [], []
    for seed in range(3):  # one split has 190 examples to test on: two of them make a point
        X, y, _, T, t = _breast_cancer(0.0, seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            rival = make_pipeline(StandardScaler(), LogisticRegressionCV(Cs=5, max_iter=500)).fit(X, y)
        ours.append(AutoSelectionClassifier(random_state=0).fit(X, y).score(T, t))
        theirs.append(rival.score(T, t))
    assert np.mean(ours) >= np.mean(theirs) - 0.01
    X, y, noisy, T, t = _breast_cancer(0.5)
    model = AutoSelectionClassifier(random_state=0).fit(X, noisy)
    assert model.score(T, t) > 0.88
    assert roc_auc_score(noisy == y, model.inlier_proba_) > 0.9
    # p(y | x) speaks of labels as they come
    proba = model.predict_proba(X)
    assert proba[np.arange(len(y)), noisy].mean() == pytest.approx((proba**2).sum(axis=1).mean(), abs=0.06)


def test_units_do_not_matter():
    X, _, noisy, T, _ = _breast_cancer(0.3)
    units = 10.0 ** np.random.default_rng(0).uniform(-3, 3, X.shape[1])
    plain = AutoSelectionClassifier(random_state=0).fit(X, noisy)
    scaled = AutoSelectionClassifier(random_state=0).fit(X * units, noisy)
    assert (plain.predict(T) == scaled.predict(T * units)).mean() > 0.99


def test_single_precision_is_dealt_out_as_its_wide_copy():
    X, _, noisy, _, _ = _breast_cancer(0.3)
    single = X.astype(np.float32)
    narrow = AutoSelectionClassifier(members=FAST, random_state=0).fit(single, noisy)
    wide = AutoSelectionClassifier(members=FAST, random_state=0).fit(single.astype(np.float64), noisy)
    np.testing.assert_allclose(narrow.coef_, wide.coef_, rtol=0.0, atol=1e-3 * np.abs(wide.coef_).max())


def test_says_who_won_and_why():
    X, _, noisy, _, _ = _breast_cancer(0.2)
    model = AutoSelectionClassifier(random_state=0).fit(X, noisy)
    table = model.members_.to_frame()
    assert set(table["name"]) == {"hebb", "lda", "soft", "bayes", "logistic", "robust logistic"}
    assert table["weight"].sum() == pytest.approx(1.0)
    assert table["weight"].is_monotonic_decreasing
    assert (table["behind"] == 0.0).any()
    assert model.winner_ == table["name"][0]
    assert model.winner_ in repr(model)
    assert "held-out" in repr(model.members_)
    alone = AutoSelectionClassifier(pool=False, members=FAST).fit(X, noisy)
    assert alone.weights_.max() == 1.0
    assert alone.winner_ == alone.members_.rows[0].name


def test_three_classes_sparse_data_and_frames():
    X, y = load_wine(return_X_y=True, as_frame=True)
    rng = np.random.default_rng(0)
    noisy = np.where(rng.random(len(y)) < 0.2, rng.integers(0, 3, len(y)), y)
    names = np.array(["a", "b", "c"])
    model = AutoSelectionClassifier(random_state=0).fit(X, names[noisy])
    assert (model.predict(X) == names[y]).mean() > 0.93
    assert model.coef_.shape == (3, 13)
    np.testing.assert_array_equal(names[model.predict_proba(X).argmax(axis=1)], model.predict(X))
    assert list(model.feature_names_in_) == list(X.columns)
    assert isinstance(model.members_.to_frame(), pd.DataFrame)
    S = sparse.random_array((200, 40), density=0.3, rng=np.random.default_rng(1), format="csr")
    labels = (S[:, [0, 1, 2]].sum(axis=1) > S[:, [3, 4, 5]].sum(axis=1)).astype(int)
    thin = AutoSelectionClassifier(random_state=0).fit(S, labels)
    assert thin.score(S, labels) > 0.8
    np.testing.assert_allclose(thin.decision_function(S), thin.decision_function(S.toarray()), rtol=1e-6)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_files_keep_everything(tmp_path, n_classes):
    X, y = load_wine(return_X_y=True)
    X, y = X[y < n_classes], y[y < n_classes]
    model = AutoSelectionClassifier(random_state=0).fit(X, y)
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    assert isinstance(again, AutoSelectionClassifier)
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(again.inlier_proba(X, y), model.inlier_proba(X, y))
    np.testing.assert_array_equal(again.score_samples(X), model.score_samples(X))
    assert repr(again) == repr(model)
    assert repr(again.members_) == repr(model.members_)
    assert again.get_params() == model.get_params()


def test_few_examples_of_a_class_and_weights():
    X = np.random.default_rng(0).standard_normal((12, 3))
    y = np.array([0] * 11 + [1])
    model = AutoSelectionClassifier().fit(X, y)
    assert model.winner_ == "hebb"
    assert "too few" in model.reason_
    weights = np.ones(400)
    weights[:50] = 0.0
    data = sample(Ensemble.from_contamination(0.5, gamma=10.0), 10, 400, rng=0)
    weighted = AutoSelectionClassifier(members=FAST).fit(data.X, data.y, weights)
    dropped = AutoSelectionClassifier(members=FAST).fit(data.X[50:], data.y[50:])
    np.testing.assert_allclose(weighted.coef_, dropped.coef_, rtol=1e-6)
    assert (weighted.inlier_proba_[:50] == 0.0).all()


@pytest.mark.parametrize(
    "settings",
    [
        {"members": ()},
        {"members": ("soft", "hard")},
        {"contamination": 1.0},
        {"contamination": "some"},
        {"n_folds": 1},
        {"max_iter": 0},
        {"tol": 0.0},
    ],
)
def test_bad_settings_are_named(settings):
    data = sample(Ensemble(0.0, 10.0), 5, 40, rng=0)
    with pytest.raises(ParameterError, match=next(iter(settings))):
        AutoSelectionClassifier(**settings).fit(data.X, data.y)


def test_bad_data_are_refused():
    data = sample(Ensemble(0.0, 10.0), 5, 40, rng=0)
    with pytest.raises(DataError, match="one class"):
        AutoSelectionClassifier().fit(data.X, np.ones(40))
    model = AutoSelectionClassifier(members=FAST).fit(data.X, data.y)
    with pytest.raises(DataError, match="not seen"):
        model.inlier_proba(data.X, np.full(40, 7))
    assert not hasattr(model, "partial_fit")
    with pytest.raises(DataError, match="no member"):
        AutoSelectionClassifier(members=("logistic",)).fit(data.X, data.y).score_samples(data.X)


def test_a_winner_that_did_not_converge_says_so():
    data = sample(Ensemble.from_contamination(0.6, gamma=10.0), 30, 400, rng=0)
    with pytest.warns(ConvergenceWarning, match="soft"):
        AutoSelectionClassifier(members=("soft",), max_iter=2).fit(data.X, data.y)


@pytest.mark.parametrize(("n", "p", "contamination"), [(60, 1200, 0.5), (20, 800, 0.3)])
def test_the_signal_is_not_taken_for_a_scale(n, p, contamination):
    data = sample(Ensemble.from_contamination(contamination, gamma=10.0), n, p, rng=0)
    model = AutoSelectionClassifier(random_state=0).fit(data.X, data.y)
    assert np.ptp(model.units_.scale) == 0.0
    assert model.winner_ == "bayes"
    stretched = AutoSelectionClassifier(members=FAST).fit(data.X * np.linspace(1.0, 2.0, n), data.y)
    assert np.ptp(stretched.units_.scale) > 0.0


def test_wide_correlated_data_are_left_to_rules_that_do_not_select():
    rng = np.random.default_rng(0)
    n, p = 200, 60
    spread = rng.standard_normal((n, n)) * (np.arange(n) < 12)  # a dozen directions carry most of the noise
    y = np.arange(3 * p) % 2
    X = rng.standard_normal((3 * p, n)) + 2.0 * rng.standard_normal((3 * p, n)) @ spread.T
    X += np.where(y == 1, 0.35, -0.35)[:, None] * rng.choice([-1.0, 1.0], n)
    noisy = np.where(rng.random(3 * p) < 0.2, rng.integers(0, 2, 3 * p), y)
    model = AutoSelectionClassifier(random_state=0).fit(X[:p], noisy[:p])
    assert {row.name for row in model.members_.rows} == {"hebb", "lda", "logistic", "robust logistic"}
    assert model.score(X[p:], y[p:]) > HebbClassifier().fit(X[:p], noisy[:p]).score(X[p:], y[p:]) + 0.1
    alone = AutoSelectionClassifier(members=("soft",), random_state=0).fit(X[:p], noisy[:p])
    assert alone.winner_ == "soft"
