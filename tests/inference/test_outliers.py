from dataclasses import replace

import numpy as np
import pytest

from outlearn.estimators import SoftSelectionClassifier
from outlearn.inference.evidence import candidates_for, climb_all, likelier, select, starts_for
from outlearn.inference.mixture import Beliefs
from outlearn.inference.mixture_data import MixtureData
from outlearn.inference.outliers import believing, messages_of
from outlearn.model import Ensemble, overlaps, sample


def _space(n, p, eps, gamma, seed, structure="spherical"):
    data = sample(Ensemble.from_contamination(eps, gamma=gamma), n, p, rng=seed)
    return data, MixtureData(data.X, (data.y + 1) // 2, 2, structure)


@pytest.mark.parametrize(("n", "p", "eps"), [(300, 300, 0.8), (400, 100, 0.2), (200, 1000, 0.9)])
def test_fraction_where_examples_vouch_for_themselves(n, p, eps):
    found = [messages_of(_space(n, p, eps, 10.0, seed)[1], Beliefs()) for seed in range(3)]
    assert np.mean([f.contamination for f in found]) == pytest.approx(eps, abs=0.08)


def test_flipped_labels_are_counted():
    data, _ = _space(200, 400, 0.0, 10.0, 0)
    y = np.where(np.random.default_rng(1).random(400) < 0.25, -data.y, data.y)
    space = MixtureData(data.X, (y + 1) // 2, 2, "spherical")
    beliefs = Beliefs(contamination=0.0, label_noise=None)
    found = believing(beliefs, messages_of(space, beliefs))
    assert found.label_noise == pytest.approx(0.25, abs=0.06)
    assert found.contamination == 0.0


def test_half_is_assumed_where_nothing_speaks_for_a_fraction():
    # below the transition of Bayes' rule even the best learner sees nothing
    _, space = _space(1000, 60, 0.8, 10.0, 0)
    assert believing(Beliefs(), messages_of(space, Beliefs())).contamination == 0.5


@pytest.mark.parametrize(("n", "p", "eps", "gamma"), [(100, 100, 0.5, 1.0), (300, 300, 0.5, 1.0)])
def test_not_worse_than_hebb_where_little_is_known(n, p, eps, gamma):
    soft, hebb = [], []
    for seed in range(5):
        data, space = _space(n, p, eps, gamma, seed)
        starts = starts_for(space, Beliefs(), 1, np.random.default_rng(0))
        fit = climb_all(space, Beliefs(), starts)[0]
        centers = (fit.mixture.centers[0], space.hebb[0])
        for angles, center in zip((soft, hebb), centers, strict=True):
            center = space.outward(center[None])[0]
            angles.append(overlaps(center, data.center).angle)
    assert np.mean(soft) <= np.mean(hebb)


def test_given_values_stay():
    _, space = _space(200, 300, 0.5, 10.0, 0)
    beliefs = Beliefs(noise_variance=0.11, center_variance=0.004)
    found = messages_of(space, beliefs)
    assert (found.noise_variance, found.center_variance) == pytest.approx((0.11, 0.004), rel=1e-12)


def test_only_where_its_model_is_the_one():
    _, space = _space(50, 60, 0.5, 10.0, 0, "diag")
    assert messages_of(space, Beliefs()) is None
    _, space = _space(50, 60, 0.5, 10.0, 0)
    assert messages_of(space, replace(Beliefs(), garbage="free")) is None


@pytest.mark.parametrize("flips", [False, True], ids=["garbage", "wrong labels"])
def test_evidence_tells_garbage_from_wrong_labels(flips):
    rng = np.random.default_rng(0)
    if flips:
        data = sample(Ensemble(-np.inf, 10.0), 500, 1000, rng=0)
        y = np.where(rng.random(1000) < 0.3, -data.y, data.y)
    else:
        data = sample(Ensemble.from_contamination(0.9, gamma=10.0), 500, 1000, rng=0)
        y = data.y
    free = {"contamination": None, "label_noise": None, "noise_variance": None, "center_variance": None}
    every = candidates_for(("spherical", "diag"), **free, garbage="shared")
    left = likelier(data.X, (y > 0).astype(np.intp), 2, every, sample_weight=np.ones(1000))
    kept = {(c.beliefs.contamination, c.beliefs.label_noise) for c in left}
    assert kept == {(0.0, None) if flips else (None, 0.0)}


def test_outliers_get_a_cloud_of_their_own_only_where_inputs_ask_for_one():
    free = {"contamination": None, "label_noise": 0.0, "noise_variance": None, "center_variance": None}
    both = candidates_for(("spherical",), **free, garbage="auto")

    def tried(data, X):
        found = select(
            X,
            (data.y > 0).astype(np.intp),
            2,
            both,
            sample_weight=np.ones(len(X)),
            n_init=1,
            rng=np.random.default_rng(0),
        )
        return {s.candidate.beliefs.garbage for s in found}

    data = sample(Ensemble.from_contamination(0.8, gamma=1.0), 60, 300, rng=2)
    assert tried(data, data.X) == {"shared"}
    wide = np.where(data.informative[:, None], data.X, 2.0 * data.X)
    assert tried(data, wide) == {"shared", "free"}


def test_soft_selection_is_as_good_as_with_known_fractions():
    """At 90 % garbage and N = P/2; fitted garbage and wrong labels together would accept everything."""
    data = sample(Ensemble.from_contamination(0.9, gamma=10.0), 500, 1000, rng=1)
    model = SoftSelectionClassifier(random_state=0).fit(data.X, data.y)
    known = SoftSelectionClassifier(
        0.9, label_noise=0, noise_variance=0.1, center_variance=1 / 500, covariance="spherical"
    ).fit(data.X, data.y)
    angles = [overlaps(m.coef_[0], data.center).angle for m in (model, known)]
    assert angles[0] < angles[1] + 0.02
    assert model.contamination_ == pytest.approx(0.9, abs=0.03)
