import math
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outlearn.exceptions import ParameterError
from outlearn.model import Ensemble


@given(st.floats(0.0, 0.999), st.floats(1e-3, 1e4))
def test_contamination_is_the_outlier_fraction(contamination, gamma):
    e = Ensemble.from_contamination(contamination, gamma=gamma)
    assert e.outlier_fraction == pytest.approx(contamination, rel=1e-12, abs=1e-300)
    assert e.informative_fraction + e.outlier_fraction == pytest.approx(1.0)


def test_no_outliers_is_minus_infinity():
    e = Ensemble.from_contamination(0.0, gamma=2.0)
    assert e.eta == -math.inf
    assert e.informative_fraction == 1.0
    assert e.outlier_fraction == 0.0


@pytest.mark.parametrize("eta", [-700.0, -40.0, 40.0, 700.0])
def test_extreme_chemical_potentials_stay_probabilities(eta):
    e = Ensemble(eta=eta, gamma=1.0)
    assert 0.0 <= e.informative_fraction <= 1.0
    assert e.informative_fraction == pytest.approx(Ensemble(eta=-eta, gamma=1.0).outlier_fraction, rel=1e-12)


def test_belief_defaults_to_the_truth_and_follows_it():
    e = Ensemble(eta=1.0, gamma=10.0)
    assert e.matched
    assert (e.gamma_tilde, e.eta_tilde) == (10.0, 1.0)
    assert e.replace(gamma=3.0) == Ensemble(eta=1.0, gamma=3.0)
    assert e.replace(eta=2.0) == Ensemble(eta=2.0, gamma=10.0)
    wrong = Ensemble(eta=1.0, gamma=10.0, gamma_tilde=5.0)
    assert not wrong.matched
    assert wrong.replace(gamma=3.0).gamma_tilde == 5.0
    assert Ensemble(**wrong.to_dict()) == wrong


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"eta": math.nan, "gamma": 1.0}, "eta"),
        ({"eta": math.inf, "gamma": 1.0}, "eta"),
        ({"eta": "0", "gamma": 1.0}, "eta"),
        ({"eta": 0.0, "gamma": 0.0}, "gamma"),
        ({"eta": 0.0, "gamma": -1.0}, "gamma"),
        ({"eta": 0.0, "gamma": math.inf}, "gamma"),
        ({"eta": 0.0, "gamma": math.nan}, "gamma"),
        ({"eta": 0.0, "gamma": None}, "gamma"),
        ({"eta": True, "gamma": 1.0}, "eta"),
        ({"eta": [0.0], "gamma": 1.0}, "eta"),
        ({"eta": 0.0, "gamma": 1j}, "gamma"),
        ({"eta": 0.0, "gamma": 1.0, "gamma_tilde": 0.0}, "gamma_tilde"),
        ({"eta": 0.0, "gamma": 1.0, "eta_tilde": math.inf}, "eta_tilde"),
    ],
)
def test_a_bad_parameter_is_named_with_its_value_and_range(arguments, name):
    with pytest.raises(ParameterError, match=name) as caught:
        Ensemble(**arguments)
    assert caught.value.name == name
    assert pickle.loads(pickle.dumps(caught.value)).name == name


@pytest.mark.parametrize("contamination", [-0.1, 1.0, 1.5, math.nan, "x"])
def test_contamination_outside_the_unit_interval(contamination):
    with pytest.raises(ParameterError, match="contamination"):
        Ensemble.from_contamination(contamination, gamma=1.0)


def test_ensembles_are_frozen_hashable_values():
    e = Ensemble(eta=0.5, gamma=2.0)
    with pytest.raises(AttributeError):
        e.eta = 1.0
    assert hash(e) == hash(Ensemble(0.5, 2.0))
    assert pickle.loads(pickle.dumps(e)) == e
    assert eval(repr(e)) == e
