"""The diagnosis as a whole: what it says of model data, of noise, of awkward data; where it falls back."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from outlearn.cli.output import plain
from outlearn.exceptions import ParameterError
from outlearn.model import Ensemble, angle, sample
from outlearn.practice import diagnose
from outlearn.practice.comparison import compare, recommended_classifier
from outlearn.practice.position import locate


@pytest.fixture(scope="module")
def found():
    data = sample(Ensemble.from_contamination(0.8, gamma=8.0), 50, 1000, 0)
    return data, diagnose(data.X, data.y)


def test_model_data(found):
    data, d = found
    assert 0.8 in d.contamination
    assert d.goodness.trust == "good"
    assert d.recommended in ("soft", "bayes")
    assert d.predictions[0].learner in ("soft", "bayes")
    assert {p.learner for p in d.predictions} == {"hebb", "soft", "hard", "bayes", "logistic", "lda"}
    B = data.center
    measured = angle(data.y @ data.X @ B / np.sqrt(B @ B), np.sum((data.y @ data.X) ** 2))
    e = d.prediction("hebb").direction_error
    assert abs(measured - e.value) < 3 * (e.high - e.low)
    with pytest.raises(ParameterError, match="learner"):
        d.prediction("oracle")


def test_it_can_be_printed_and_stored(found):
    _, d = found
    text = repr(d)
    assert d.verdict in text
    assert "81 %" in text or "80 %" in text or "79 %" in text
    stored = json.loads(json.dumps(plain(d), allow_nan=False))
    assert stored["recommended"] == d.recommended
    assert len(stored["verdicts"]["examples"]) == 1000
    assert len(d.to_frame()) == 6
    assert d._repr_html_().startswith("<pre>")


def test_noise_is_called_noise():
    rng = np.random.default_rng(0)
    d = diagnose(rng.standard_normal((400, 60)), rng.integers(0, 2, 400))
    assert not d.detected
    assert d.verdict.startswith("No signal")
    assert (d.contamination.low, d.contamination.high) == (0.0, 1.0)
    assert d.verdicts.counts["doubtful"] == 400
    assert d.predictions == ()


def test_few_examples_and_unequal_classes_are_remarked_on():
    rng = np.random.default_rng(1)
    y = np.where(rng.random(150) < 0.1, 1, -1)
    X = y[:, None] * 0.25 + rng.standard_normal((150, 200))
    d = diagnose(X, y)
    assert any("fewer examples than features" in w for w in d.warnings)
    assert any("unequal size" in w for w in d.warnings)


def test_fields_are_in_units_of_their_noise(found):
    data, d = found
    garbage = d.fields[~data.informative]
    good = d.fields[data.informative]
    assert garbage.std() == pytest.approx(1.0, abs=0.1)
    assert good.mean() - garbage.mean() == pytest.approx(d.separation, abs=0.3)


def test_position_is_that_of_the_transition():
    from outlearn.theory import SoftSelection, transitions

    e = Ensemble.from_contamination(0.8, gamma=10.0)
    here = locate(e, 20.0, "soft")
    (first, *_) = transitions(SoftSelection(), e, 20.0, over="eta", between=(0.0, 6.0))
    assert here.eta_critical == pytest.approx(first.value, abs=1e-6)
    assert here.safe
    assert "from 80 % to 98 %" in here.sentences[0]
    beyond = locate(Ensemble(eta=4.3, gamma=10.0), 20.0, "soft")
    assert beyond.side == "lost"
    assert not beyond.safe
    assert beyond.samples_factor > 1.0
    assert "more examples" in " ".join(beyond.sentences) or "times as many" in " ".join(beyond.sentences)
    assert locate(Ensemble(eta=-1.0, gamma=2.0), 20.0, "bayes").side == "smooth"


def test_bayes_is_recommended_where_soft_selection_fails_and_never_ends_worse_than_hebb():
    # low alpha, near the transition: the posterior mean, not a mode
    errors = []
    for seed in range(2):
        data = sample(Ensemble.from_contamination(0.9, gamma=10.0), 300, 450, seed)
        d = diagnose(data.X, data.y)
        if d.detected:
            assert d.recommended == "bayes", d.reason
        model = recommended_classifier(d, random_state=0).fit(data.X, data.y)
        J, B = model.coef_.ravel(), data.center
        h = data.y @ data.X
        unit = np.sqrt(B @ B)
        errors.append([angle(J @ B / unit, J @ J), angle(h @ B / unit, h @ h)])
    ours, hebb = np.mean(errors, axis=0)
    assert ours <= hebb + 0.005, errors


def test_comparison_ranks_the_recommended_classifier(found):
    data, d = found
    table = compare(d, data.X, data.y, n_folds=3)
    ours = next(c for c in table if c.ours)
    assert len(table) == 5
    assert ours.accuracy >= max(c.accuracy for c in table) - 0.03
    assert ours.accuracy_kept > 0.9
    assert 0.5 < ours.accuracy < 0.7  # garbage costs every method half of its share


@pytest.mark.parametrize("wrong", [{"fdr": 0.9}, {"covariance": "round"}, {"classes": (1, 1)}])
def test_bad_parameters(wrong, found):
    data, _ = found
    with pytest.raises(ParameterError):
        diagnose(data.X, data.y, **wrong)


def test_a_feature_that_gives_the_label_away_is_named(found):
    data, _ = found
    X = pd.DataFrame(data.X[:200]).rename(columns=str)
    X["leak"] = (data.y[:200] > 0).astype(float)
    d = diagnose(X, data.y[:200])
    assert any("'leak' tells the label nearly alone" in note for note in d.warnings)
    assert "under 0.1 % errors" in d.verdict
    json.dumps(plain(d), allow_nan=False)


def test_labels_by_a_coin_on_groups_of_inputs_are_no_signal():
    data = sample(Ensemble.from_contamination(0.0, gamma=10.0), 20, 300, 0)
    d = diagnose(data.X, np.random.default_rng(1).integers(0, 2, 300))
    assert d.verdict.startswith("No signal")
    assert any("labels have nothing to do with that" in note for note in d.warnings)
    assert "trust" not in repr(d)


def test_comparison_survives_features_that_hardly_vary(found):
    data, _ = found
    X = np.column_stack([data.X, np.arange(1000) == 5])
    assert len(compare(diagnose(X, data.y), X, data.y, n_folds=2)) == 5
