"""Plans: inverse of the learning curves, honest about what cannot be reached, kept by runs."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.special import logit

from outlearn.cli.output import plain
from outlearn.exceptions import ParameterError
from outlearn.inference.amp import amp
from outlearn.model import Ensemble, angle, sample
from outlearn.practice import diagnose, plan
from outlearn.practice.curves import learning_curve
from outlearn.practice.predictions import World, cosines
from outlearn.theory import BayesOptimal, solve

WORLD = Ensemble.from_contamination(0.7, gamma=8.0)


@pytest.fixture(scope="module")
def made():
    return plan(WORLD, target_error=0.06, kind="direction", n_features=100, n_samples=600)


def test_the_need_is_where_the_theory_meets_the_target(made):
    for learner in ("bayes", "hebb", "soft"):
        need = made.need(learner)
        cosine = cosines(learner, World.of(WORLD, 100), [need.n_samples / 100])[0][0]
        assert np.arccos(cosine) / np.pi == pytest.approx(0.06, rel=0.02)
        assert need.low < need.n_samples < need.high
    assert solve(BayesOptimal(), WORLD, made.need("bayes").n_samples / 100).angle == pytest.approx(
        0.06, rel=0.02
    )
    assert made.needs[0].learner == "bayes"
    assert made.needs[0].n_samples < made.need("hebb").n_samples < made.need("lda").n_samples


def test_the_promise_is_kept(made):
    need = made.need("bayes")
    errors = []
    for seed in range(6):
        data = sample(WORLD, 100, need.n_samples, seed)
        found = amp(data.X, data.y, contamination=0.7, noise_variance=1 / 8.0)
        B = data.center
        errors.append(float(angle(found.center @ B / np.sqrt(B @ B), found.center @ found.center)))
    error = np.std(errors, ddof=1) / np.sqrt(6)
    assert np.mean(errors) == pytest.approx(0.06, abs=3 * error)


def test_checking_is_worth_what_it_says(made):
    # as many more examples as checking is said to be worth bring the same error
    row = made.checking[3]
    more = 600 + row.worth_doubtful
    cosine = cosines("bayes", World.of(WORLD, 100), [more / 100])[0][0]
    assert np.arccos(cosine) / np.pi == pytest.approx(row.error_doubtful, rel=5e-3)
    assert all(c.error_doubtful <= c.error_random + 1e-9 for c in made.checking)
    assert all(c.worth_doubtful >= c.worth_random for c in made.checking)
    assert made.error_now > made.checking[-1].error_random


def test_labels_to_check_reach_the_target():
    easy = plan(
        WORLD, target_error=0.083, kind="direction", n_features=100, n_samples=600, learners=("bayes",)
    )
    assert easy.error_now > 0.083 > easy.checking[-1].error_random
    assert 0 < easy.checks_needed < 600
    from outlearn.practice.checking import Knowledge, overlap

    q = overlap(
        Knowledge(contamination=0.7), alpha=6.0, gamma=8.0, checked=easy.checks_needed / 600, order="doubtful"
    )
    assert np.arccos(np.sqrt(q)) / np.pi == pytest.approx(0.083, rel=2e-3)


def test_what_cannot_be_reached_is_said():
    overlap = plan(Ensemble.from_contamination(0.5, gamma=2.0), target_error=0.05, n_features=50)
    assert not overlap.reachable
    assert "unlimited" in overlap.verdict
    few = plan(WORLD, target_error=0.03, kind="direction", n_features=100, max_samples=300)
    assert not few.reachable
    assert "300 examples the error is still" in few.verdict


def test_a_diagnosis_brings_its_uncertainty_and_the_rows_to_check(made):
    data = sample(WORLD, 60, 400, 0)
    d = diagnose(data.X, data.y)
    p = plan(d, target_error=0.06, kind="direction", learners=("bayes", "hebb"))
    q = plan(
        d.effective.ensemble, target_error=0.06, kind="direction", n_features=60, learners=("bayes", "hebb")
    )
    wide, narrow = p.need("bayes"), q.need("bayes")
    assert wide.high / wide.low > narrow.high / narrow.low
    assert p.n_now == 400
    first = d.verdicts.keep_proba[p.check_first[:10]]
    assert np.all(np.abs(first - 0.5) < 0.3)
    json.dumps(plain(p), allow_nan=False)
    assert set(p.to_frame()["learner"]) == {"bayes", "hebb"}
    assert p.verdict in repr(p)


def test_curves_fall_and_stay_inside_their_band(made):
    for curve in made.curves:
        assert np.all(curve.low <= curve.error)
        assert np.all(curve.error <= curve.high)
    bayes = made.curve("bayes")
    assert np.all(np.diff(bayes.error) < 0)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"target_error": 0.7, "n_features": 10}, "target_error"),
        ({"target_error": 0.1}, "n_features"),
        ({"target_error": 0.1, "n_features": 10, "kind": "train"}, "kind"),
        ({"target_error": 0.1, "n_features": 10, "max_samples": 0}, "max_samples"),
        ({"target_error": 0.1, "n_features": 10, "learners": ("oracle",)}, "learners"),
    ],
)
def test_bad_arguments(options, name):
    with pytest.raises(ParameterError, match=name):
        plan(WORLD, **options)


def test_a_diagnosis_without_a_signal_cannot_be_planned_from():
    rng = np.random.default_rng(0)
    d = diagnose(rng.standard_normal((100, 20)), rng.integers(0, 2, 100))
    with pytest.raises(ParameterError, match="signal"):
        plan(d, target_error=0.1)
    with pytest.raises(ParameterError, match="Diagnosis or an Ensemble"):
        plan("data", target_error=0.1)


def test_the_band_knows_that_the_number_of_garbage_examples_is_drawn():
    world, errors = Ensemble.from_contamination(0.8, gamma=10.0), []
    for seed in range(200):
        data = sample(world, 100, 200, seed)
        J, B = data.y @ data.X, data.center
        errors.append(float(angle(J @ B / np.sqrt(B @ B), J @ J)))
    curve = learning_curve("hebb", [World.of(world, 100)], np.array([200.0]), "direction")
    low, high = logit(curve.low[0]), logit(curve.high[0])
    assert (high - low) / (2 * 1.645) == pytest.approx(np.std(logit(errors)), rel=0.15)
