"""A minimum is followed: up and down differ where two minima are there, and agree where there is one."""

import json

import numpy as np
import pytest

from outlearn.exceptions import ParameterError
from outlearn.model import Ensemble
from outlearn.simulation.hysteresis import hysteresis

ENSEMBLE = Ensemble(eta=0.0, gamma=10.0)


def test_one_minimum_no_hysteresis():
    loop = hysteresis(ENSEMBLE, [0.0, 0.5, 1.0], n_features=40, alpha=20, samples=3)
    for up, down in zip(loop.up, loop.down, strict=True):
        np.testing.assert_allclose(up.R.values, down.R.values, rtol=1e-5)
        np.testing.assert_allclose(up.energy.values, down.energy.values, rtol=1e-8)


def test_hard_selection_keeps_on_the_way_up_what_it_does_not_find_on_the_way_down():
    etas = [0.0, 1.0, 2.0, 3.0, 4.0, 6.0, 9.0]
    loop = hysteresis(ENSEMBLE, etas, n_features=40, alpha=20, learner="hard", samples=4)
    assert loop.up[0].R.mean > 0.9
    assert loop.up[-1].R.mean == pytest.approx(0.0, abs=0.05)  # everything is rejected in the end
    assert loop.width > 0.5
    # at the top both ways share one state
    assert loop.up[-1] == loop.down[-1] or loop.up[-1].R.mean == pytest.approx(loop.down[-1].R.mean, abs=0.05)


@pytest.mark.parametrize("start", ["random", "hebb", "teacher", "amp"])
def test_every_start_reaches_the_only_minimum(start):
    loop = hysteresis(ENSEMBLE, [0.0, 1.0], n_features=30, alpha=20, start=start, samples=2)
    other = hysteresis(ENSEMBLE, [0.0, 1.0], n_features=30, alpha=20, start="hebb", samples=2)
    np.testing.assert_allclose(loop.up[0].R.values, other.up[0].R.values, rtol=1e-4)


def test_workers_do_not_change_a_bit():
    one, two = (
        hysteresis(ENSEMBLE, [0.0, 2.0, 4.0], n_features=20, alpha=5, samples=4, workers=workers)
        for workers in (1, 2)
    )
    assert json.dumps(one.to_dict()) == json.dumps(two.to_dict())
    assert len(one.to_frame()) == 6
    assert "way up" in repr(one)


@pytest.mark.parametrize(("change", "name"), [({"etas": [1.0]}, "etas"), ({"samples": 0}, "samples")])
def test_bad_requests_are_named(change, name):
    with pytest.raises(ParameterError, match=name):
        hysteresis(ENSEMBLE, **({"etas": [0.0, 1.0], "n_features": 5, "alpha": 2} | change))
