import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator
from threadpoolctl import threadpool_info, threadpool_limits

from outlearn import Ensemble, sample
from outlearn.estimators import HardSelectionClassifier, HebbClassifier, SoftSelectionClassifier
from outlearn.exceptions import ParameterError
from outlearn.inference.results import FitStatus
from outlearn.model import overlaps

PLAIN = {"covariance": "spherical", "label_noise": 0}


def _draw(eps=0.8, n=50, p=1000, seed=0):
    return sample(Ensemble.from_contamination(eps, gamma=10.0), n, p, rng=seed)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", [HebbClassifier, SoftSelectionClassifier, HardSelectionClassifier])
def test_keeps_the_contract_of_scikit_learn(kind):
    # everything at its default, so that all that can be automatic is
    for result in check_estimator(kind(), on_skip=None):
        # the array API check needs an environment variable of scipy; nothing of ours is left out
        assert result["status"] == "passed" or result["check_name"] == "check_array_api_input", result


@pytest.mark.parametrize(
    ("eps", "soft", "hebb"), [(0.5, 0.033, 0.045), (0.8, 0.053, 0.106), (0.9, 0.077, 0.194)]
)
def test_direction_errors(eps, soft, hebb):
    found = {"soft": [], "hebb": []}
    for seed in range(5):
        data = _draw(eps, 100, 2000, seed)
        for name, model in (("soft", SoftSelectionClassifier(**PLAIN)), ("hebb", HebbClassifier())):
            found[name].append(overlaps(model.fit(data.X, data.y).coef_[0], data.center).angle)
    # seed to seed spread of 5-10 %, mean over five
    assert np.mean(found["soft"]) == pytest.approx(soft, rel=0.07)
    assert np.mean(found["hebb"]) == pytest.approx(hebb, rel=0.08)


def test_finds_fractions_noise_and_inliers():
    data = _draw()
    model = SoftSelectionClassifier(**PLAIN).fit(data.X, data.y)
    assert model.contamination_ == pytest.approx(0.8, abs=0.05)
    assert model.noise_variance_ == pytest.approx(0.1, rel=0.03)
    assert model.inlier_proba_[data.informative].mean() > model.inlier_proba_[~data.informative].mean() + 0.4
    # the probabilities are calibrated: their sum counts the informative
    assert model.inlier_proba_.sum() == pytest.approx(data.informative.sum(), rel=0.15)


def test_proba_is_calibrated_on_the_contaminated_stream():
    data, fresh = _draw(0.5), None
    fresh = sample(Ensemble.from_contamination(0.5, gamma=10.0), 50, 20000, rng=9, center=data.center)
    proba = SoftSelectionClassifier(**PLAIN).fit(data.X, data.y).predict_proba(fresh.X)[:, 1]
    for low, high in ((0.0, 0.2), (0.4, 0.6), (0.8, 1.0)):
        chosen = (proba >= low) & (proba < high)
        assert (fresh.y[chosen] == 1).mean() == pytest.approx(proba[chosen].mean(), abs=0.04)


def test_flipped_labels_are_found():
    data = _draw(0.0, 20, 1000)
    y = data.y.copy()
    flipped = np.random.default_rng(0).random(1000) < 0.3
    y[flipped] *= -1
    model = SoftSelectionClassifier(contamination=0.0, label_noise="auto", covariance="diag").fit(data.X, y)
    assert model.label_noise_ == pytest.approx(0.3, abs=0.05)
    assert model.score(data.X, data.y) > 0.97
    assert model.inlier_proba_[~flipped].mean() > 0.9 > 0.1 > model.inlier_proba_[flipped].mean()


def test_garbage_does_not_shape_the_class_covariance():
    rng = np.random.default_rng(0)
    scale = np.array([1.0, 3.0, 0.3, 1.0])
    y = rng.integers(0, 2, 3000)
    X = rng.standard_normal((3000, 4)) * scale + np.outer(2 * y - 1, [2.0, 0, 0, 2.0])
    garbage = rng.random(3000) < 0.4
    X[garbage] = 6.0 * rng.standard_normal((garbage.sum(), 4)) + 3.0
    model = SoftSelectionClassifier(covariance="diag", garbage_covariance="learned", label_noise=0).fit(X, y)
    np.testing.assert_allclose(np.sqrt(model.model_.mixture.covariance.values), scale, rtol=0.1)
    assert model.contamination_ == pytest.approx(0.4, abs=0.04)


def test_more_than_two_classes_sparse_pandas_weights():
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b", "c"], [50, 100, 150])
    centers = {"a": [3, 0, 0], "b": [0, 3, 0], "c": [0, 0, 3]}
    X = rng.standard_normal((300, 3)) + np.array([centers[c] for c in y])
    frame = pd.DataFrame(X, columns=["u", "v", "w"])
    model = SoftSelectionClassifier(covariance="diag", label_noise=0).fit(frame, y)
    assert model.score(frame, y) > 0.9
    assert model.feature_names_in_.tolist() == ["u", "v", "w"]
    assert model.coef_.shape == (3, 3)
    thin = SoftSelectionClassifier(covariance="diag", label_noise=0).fit(sparse.csr_matrix(X), y)
    np.testing.assert_allclose(thin.centers_, model.centers_, rtol=1e-6)
    weights = np.ones(300)
    weights[:10] = 0.0
    weighted = HebbClassifier().fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(weighted.centers_, HebbClassifier().fit(X[10:], y[10:]).centers_)
    assert (weighted.inlier_proba_[:10] == 0.0).all()


def test_works_with_the_tools_around():
    data = _draw(0.5, 20, 300)
    model = SoftSelectionClassifier(**PLAIN).fit(data.X, data.y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.decision_function(data.X), model.decision_function(data.X))
    pipe = make_pipeline(StandardScaler(), clone(model))
    search = GridSearchCV(pipe, {"softselectionclassifier__contamination": [0.3, 0.6]}, cv=2)
    assert search.fit(data.X, data.y).best_score_ > 0.6
    before = model.n_iter_
    assert model.set_params(warm_start=True).fit(data.X, data.y).n_iter_ <= before


def test_stream_reaches_the_batch():
    data = _draw(0.5, 20, 6000)
    stream = SoftSelectionClassifier(**PLAIN)
    for rows in np.array_split(np.arange(6000), 20):
        stream.partial_fit(data.X[rows], data.y[rows], classes=[-1, 1])
    first = SoftSelectionClassifier(**PLAIN).fit(data.X[:300], data.y[:300])
    error, alone = (overlaps(m.coef_[0], data.center).angle for m in (stream, first))
    assert error < 0.5 * alone
    assert stream.contamination_ == pytest.approx(0.5, abs=0.05)


def test_automatic_choice_of_the_noise():
    rng = np.random.default_rng(0)
    mix = rng.standard_normal((6, 6))
    y = rng.integers(0, 2, 500)
    X = (rng.standard_normal((500, 6)) + np.outer(2 * y - 1, [1.2, 0, 0, 0, 0, 0])) @ mix
    observed = np.where(rng.random(500) < 0.3, rng.integers(0, 2, 500), y)
    model = SoftSelectionClassifier().fit(X, observed)
    assert model.covariance_structure_ == "tied"
    assert model.score(X, y) > 0.84  # Bayes: 0.885
    assert len(model.selection_) >= 6


BAD = [
    ({"contamination": 1.0}, "contamination"),
    ({"contamination": -0.1}, "contamination"),
    ({"noise_variance": 0.0}, "noise_variance"),
    ({"center_variance": -1.0}, "center_variance"),
    ({"covariance": "full"}, "covariance"),
    ({"label_noise": "some"}, "label_noise"),
    ({"contamination": 0.6, "label_noise": 0.4}, "label_noise"),
    ({"n_init": 0}, "n_init"),
    ({"n_jobs": "all"}, "n_jobs"),
    ({"n_jobs": 0}, "n_jobs"),
    ({"tol": 0.0}, "tol"),
    ({"garbage_covariance": "own"}, "garbage_covariance"),
]


@pytest.mark.parametrize(("params", "name"), BAD)
def test_bad_parameters_are_named(params, name):
    data = _draw(0.5, 5, 40)
    with pytest.raises(ValueError, match=name):
        SoftSelectionClassifier(**params).fit(data.X, data.y)


def test_bad_parameters_say_what_is_permitted():
    data = _draw(0.5, 5, 40)
    for value in (1.0, -0.1, 7, np.nan, "most", True, None):
        with pytest.raises(ParameterError, match=r"contamination.*'auto' or a number with 0 <= value < 1"):
            SoftSelectionClassifier(contamination=value).fit(data.X, data.y)
    for value in (0.0, -1.0, np.inf, np.nan, "wide"):
        with pytest.raises(ParameterError, match=r"noise_variance.*'auto' or a finite number > 0"):
            HardSelectionClassifier(noise_variance=value).fit(data.X, data.y)
        with pytest.raises(ParameterError, match=r"center_variance.*'auto' or a finite number > 0"):
            HebbClassifier(center_variance=value).fit(data.X, data.y)


@pytest.mark.parametrize("kind", [SoftSelectionClassifier, HardSelectionClassifier, HebbClassifier])
def test_bad_data_are_explained(kind):
    data = _draw(0.5, 5, 40)
    model = kind(covariance="spherical")
    for bad, word in ((np.nan, "Input X contains NaN"), (np.inf, "Input X contains infinity")):
        X = data.X.copy()
        X[3, 2] = bad
        with pytest.raises(ValueError, match=word):
            model.fit(X, data.y)
    with pytest.raises(ValueError, match="one class only"):
        model.fit(data.X, np.ones(40))
    with pytest.raises(ValueError, match=r"3 samples for 3 classes: .* more samples than classes"):
        model.fit(data.X[:3], ["a", "b", "c"])
    frame = pd.DataFrame(data.X, columns=list("abcde")).assign(c=1.0)
    with pytest.raises(ValueError, match=r"constant feature 'c': .*drop them"):
        model.fit(frame, data.y)
    with pytest.raises(ValueError, match="constant features 0, 3: "):
        model.fit(data.X * [0, 1, 1, 0, 1], data.y)


@pytest.mark.parametrize("kind", [SoftSelectionClassifier, HardSelectionClassifier, HebbClassifier])
def test_numbers_that_cannot_be_squared_are_explained(kind):
    data = _draw(0.5, 5, 40)
    single = data.X.astype(np.float32)
    for X, word in (
        (data.X * 1e200, "too large to square in float64"),
        (data.X * 1e-200, "too small to square in float64"),
        (single * np.float32(1e30), "too large to square in float32"),
        (single * np.float32(1e-30), "too small to square in float32"),
    ):
        with pytest.raises(ValueError, match=word):
            kind().fit(X, data.y)
    model = kind(covariance="diag").fit(data.X, data.y)
    with pytest.raises(ValueError, match="too large to square"):
        model.score_samples(data.X * 1e200)
    with pytest.raises(ValueError, match="can be counted"):
        model.fit(data.X, data.y, sample_weight=np.full(40, 1e200))


@pytest.mark.parametrize("kind", [SoftSelectionClassifier, HebbClassifier])
def test_features_that_vary_by_rounding_alone_are_named(kind):
    data = _draw(0.5, 5, 40)
    far = np.array([0.0, 0.0, 1e6, 0.0, 0.0])
    with pytest.raises(ValueError, match=r"nearly constant feature 2: .*float32 does not tell from rounding"):
        kind(covariance="tied").fit((data.X + far).astype(np.float32), data.y)
    # as long as rounding is no part of the spread, the offset does not matter
    here, there = (kind(covariance="tied").fit(X, data.y) for X in (data.X, data.X + far))
    np.testing.assert_allclose(there.coef_, here.coef_, rtol=1e-5, atol=1e-5)


def test_more_classes_than_features():
    rng = np.random.default_rng(0)
    labels = np.arange(90) // 10
    X = rng.standard_normal((9, 3))[labels] * 5 + rng.standard_normal((90, 3))
    assert SoftSelectionClassifier(covariance="spherical").fit(X, labels).score(X, labels) > 0.9


def test_labels_of_mixed_types_are_explained():
    data = _draw(0.5, 5, 40)
    with pytest.raises(ValueError, match="y mixes labels of different types"):
        HebbClassifier().fit(data.X, np.array(["a", 1] * 20, dtype=object))


def test_examples_that_are_all_their_label():
    y = np.arange(40) % 2
    model = SoftSelectionClassifier().fit(np.repeat(2.0 * y[:, None] - 1.0, 5, axis=1), y)
    assert (model.predict(2.0 * np.eye(2, 5) - 1.0) == 0).all()
    # certainty of a label is no reason to warn
    assert np.isneginf(model.predict_log_proba(np.full((1, 5), -1e3)).min()) or model.contamination_ > 0.0


def test_not_worse_than_hebb_where_nothing_can_be_told():
    """Few examples in many dimensions: neither a form of the noise nor wrong labels are fitted to chance."""
    errors = []
    for seed in range(6):
        data = sample(Ensemble.from_contamination(0.8, gamma=10.0), 600, 120, rng=seed)
        models = (HebbClassifier(), SoftSelectionClassifier(random_state=0))
        errors.append([overlaps(m.fit(data.X, data.y).coef_[0], data.center).angle for m in models])
    hebb, soft = np.transpose(errors)
    assert (soft - hebb).mean() < 0.002
    assert (soft - hebb).max() < 0.01


@pytest.mark.parametrize("kind", [SoftSelectionClassifier, HardSelectionClassifier, HebbClassifier])
def test_shapes_that_do_not_match_are_explained(kind):
    data = _draw(0.5, 5, 40)
    model = kind(covariance="spherical")
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples: \[40, 39\]"):
        model.fit(data.X, data.y[:-1])
    with pytest.raises(ValueError, match=r"sample_weight\.shape == "):
        model.fit(data.X, data.y, sample_weight=np.ones(39))
    with pytest.raises(ValueError, match="negative"):
        model.fit(data.X, data.y, sample_weight=np.full(40, -1.0))
    with pytest.raises(ValueError, match="at least one non-zero"):
        model.fit(data.X, data.y, sample_weight=np.zeros(40))
    with pytest.raises(ValueError, match="2D array"):
        model.fit(data.X[0], data.y)
    with pytest.raises(ValueError, match=r"2 samples for 3 classes: .* more samples than classes"):
        clone(model).partial_fit(data.X[:2], [0, 1], classes=[0, 1, 2])
    with pytest.raises(ValueError, match="needs classes="):
        clone(model).partial_fit(data.X, data.y)
    with pytest.raises(ValueError, match="not among classes"):
        clone(model).partial_fit(data.X, data.y, classes=[5, 6])
    model.fit(data.X, data.y)
    for method in (model.predict, model.predict_proba, model.decision_function, model.score_samples):
        with pytest.raises(ValueError, match=r"X has 4 features, but .* is expecting 5 features"):
            method(data.X[:, :4])
    with pytest.raises(ValueError, match="not seen in fit"):
        model.inlier_proba(data.X, np.full(40, 7))
    with pytest.raises(ValueError, match="shape"):
        model.inlier_proba(data.X, data.y[:-1])


def test_a_full_covariance_refuses_sparse_data():
    data = _draw(0.5, 5, 40)
    with pytest.raises(ValueError, match="'tied' does not take sparse data"):
        SoftSelectionClassifier(covariance="tied").fit(sparse.csr_matrix(data.X), data.y)


@pytest.mark.parametrize("kind", [SoftSelectionClassifier, HardSelectionClassifier])
def test_a_fit_that_rejects_everything_says_so(kind):
    # no example is near enough to a common centre for so strong a belief in garbage
    data = _draw(1.0 - 1e-6, 20, 60)
    model = kind(contamination=1.0 - 1e-9, noise_variance=0.1, **PLAIN)
    with pytest.warns(ConvergenceWarning, match=r"degenerate fit: .* rejected every example"):
        model.fit(data.X, data.y)
    assert model.status_ is FitStatus.ALL_REJECTED
    assert model.inlier_proba_.max() < 0.5
    assert model.starts_[0]["status"] == "ALL_REJECTED"


def test_not_converged_says_what_to_do():
    data = _draw(0.9, 100, 300)
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        SoftSelectionClassifier(contamination=0.9, max_iter=1, **PLAIN).fit(data.X, data.y)


@pytest.mark.parametrize(("n_jobs", "threads"), [(None, 1), (2, 2)])
def test_matrix_products_keep_to_n_jobs(n_jobs, threads):
    def pools():
        return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}

    seen = set()

    class Watched(SoftSelectionClassifier):
        def _finish(self, *args):
            seen.update(pools())
            return super()._finish(*args)

    data = _draw(0.5, 5, 100)
    with threadpool_limits(3, user_api="blas"):
        before = pools()
        Watched(n_jobs=n_jobs, **PLAIN).fit(data.X, data.y)
        assert pools() == before
    assert seen == {threads}


@pytest.mark.parametrize("kind", [HebbClassifier, SoftSelectionClassifier, HardSelectionClassifier])
def test_what_says_the_same_gives_the_same(kind):
    """Order of rows and columns, names of labels, units, origin, storage, copies: all at its default."""
    data = _draw(0.5, 20, 300)
    rng = np.random.default_rng(0)
    rows, columns, counts = rng.permutation(300), rng.permutation(20), rng.integers(0, 3, 300)

    def direction(X, y, **weights):
        coef = kind(random_state=0).fit(X, y, **weights).coef_[0]
        return coef / np.linalg.norm(coef)

    found = direction(data.X, data.y)
    same = {"rtol": 0.0, "atol": 1e-9}
    np.testing.assert_allclose(direction(data.X[rows], data.y[rows]), found, **same)
    np.testing.assert_allclose(direction(data.X[:, columns], data.y), found[columns], **same)
    np.testing.assert_allclose(direction(data.X, -data.y), -found, **same)
    np.testing.assert_allclose(direction(1e3 * data.X + 40.0, data.y), found, **same)
    np.testing.assert_allclose(direction(np.asfortranarray(data.X), data.y), found, **same)
    np.testing.assert_allclose(
        direction(data.X, data.y, sample_weight=counts),
        direction(np.repeat(data.X, counts, axis=0), np.repeat(data.y, counts)),
        **same,
    )
