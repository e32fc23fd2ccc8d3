"""Goodness of fit: quiet on data from the model, loud where a departure was built in."""

from __future__ import annotations

import numpy as np
import pytest

from outlearn.model import Ensemble, sample
from outlearn.practice.folding import fold
from outlearn.practice.goodness import assess


def drawn(seed=0, n=40, p=800):
    return sample(Ensemble.from_contamination(0.5, gamma=8.0), n, p, seed)


def test_data_from_the_model_pass():
    p_values = []
    for seed in range(8):
        data = drawn(seed)
        g = assess(fold(data.X, data.y, structure="spherical"))
        p_values.append(g.field_p_value)
        assert g.trust == "good", g.complaints
    # a calibrated p-value falls below 0.05 more than 2 times in 8 with probability 0.006
    assert np.sum(np.array(p_values) < 0.05) <= 2
    assert np.mean(p_values) > 0.25


def test_heavy_tails_are_seen():
    data, rng = drawn(), np.random.default_rng(0)
    noise = rng.standard_t(3, size=data.X.shape) / np.sqrt(3.0 * 8.0)
    X = (data.informative * data.y)[:, None] * data.center / np.sqrt(40) + noise
    g = assess(fold(X, data.y))
    assert g.kurtosis > 1.0
    assert any("tails" in c for c in g.complaints)
    assert g.trust != "good"


def test_examples_of_different_scale_are_seen():
    data, rng = drawn(), np.random.default_rng(0)
    g = assess(fold(data.X * np.exp(rng.normal(0.0, 0.4, 800))[:, None], data.y))
    assert g.length_spread > 3.0
    assert any("scale" in c for c in g.complaints)


def test_correlations_that_the_structure_leaves_out_are_seen():
    data = drawn()
    mixing = np.eye(40) + 0.3 * np.random.default_rng(0).standard_normal((40, 40))
    g = assess(fold(data.X @ mixing, data.y, structure="diag"))
    assert g.correlation > 0.1
    assert any("correlated" in c for c in g.complaints)


def test_wider_garbage_is_seen():
    data = drawn(p=1500)
    X = np.where(data.informative[:, None], data.X, 1.4 * data.X)
    g = assess(fold(X, data.y, structure="spherical"))
    assert g.garbage_spread > 1.3
    assert any("wider" in c for c in g.complaints)


def test_fields_of_another_shape_are_seen():
    data = drawn(p=1500)
    # the informative examples sit at two distances instead of one
    far = np.where(np.random.default_rng(0).random(1500) < 0.5, 0.4, 1.8) - 1.0
    shift = (data.y * data.informative * far)[:, None] * data.center / np.sqrt(40)
    g = assess(fold(data.X + shift, data.y, structure="spherical"))
    assert g.field_p_value < 0.01
    assert g.field_distance > 0.03
    assert g.quantiles_seen.size == g.quantiles_expected.size == 99


@pytest.mark.parametrize("trust", ["good", "fair", "poor"])
def test_every_grade_has_a_sentence(trust):
    from dataclasses import replace

    data = drawn()
    g = replace(assess(fold(data.X, data.y, structure="spherical")), trust=trust)
    assert g.statement.endswith(".")
    assert g.to_dict()["statement"] == g.statement


def test_few_examples_are_not_blamed_for_chance():
    complaints = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        complaints += assess(fold(rng.standard_normal((14, 30)), np.arange(14) % 2)).complaints
    assert len(complaints) <= 1, complaints


def test_a_single_feature_has_nothing_off_the_centre_to_complain_of():
    data = sample(Ensemble.from_contamination(0.55, gamma=8.0), 1, 300, 0)
    assert assess(fold(data.X, data.y)).trust == "good"
