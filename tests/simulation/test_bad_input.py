"""Every argument that is wrong is named, and nothing is made."""

import numpy as np
import pytest

from outlearn.exceptions import OutlearnError
from outlearn.model import Ensemble
from outlearn.simulation import Campaign, Dice, Store, Summary, Task, compare_with_theory, finite_size_scaling
from outlearn.simulation.hysteresis import hysteresis

ENSEMBLE = Ensemble(0.0, 10.0)
TASK = Task(learner="soft", ensemble=ENSEMBLE, n_features=10, alpha=2, runs=1)
LOOP = {"etas": [0.0, 1.0], "n_features": 10, "alpha": 2, "samples": 1}


def loop(**change):
    settings = LOOP | change
    return hysteresis(settings.pop("ensemble", ENSEMBLE), settings.pop("etas"), **settings)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: Campaign(3), "tasks"),
        (lambda: Campaign(None), "tasks"),
        (lambda: Campaign(TASK).run(3), "path"),
        (lambda: Campaign(TASK).run("\0"), "path"),
        (lambda: Campaign(TASK).run(stop_when=3), "stop_when"),
        (lambda: Campaign(TASK).run(progress="x"), "progress"),
        (lambda: Store(None), "path"),
        (lambda: finite_size_scaling(3), "runs"),
        (lambda: finite_size_scaling([3]), "runs"),
        (lambda: finite_size_scaling([], "x"), "estimator"),
        (lambda: finite_size_scaling([], exponent="x"), "exponent"),
        (lambda: finite_size_scaling([], bootstrap=-1), "bootstrap"),
        (lambda: finite_size_scaling([], seed=-1), "seed"),
        (lambda: compare_with_theory(None), "scaling"),
        (lambda: Dice(None, 10, 20), "ensemble"),
        (lambda: Dice(ENSEMBLE, 10, 20, memory="x"), "memory"),
        (lambda: Dice(ENSEMBLE, 10, 20, rng="x"), "rng"),
        (lambda: Dice(ENSEMBLE, 10, 20, center="x"), "center"),
        (lambda: Dice(ENSEMBLE, 10, 20, center=np.ones(9)), "center"),
        (lambda: Dice(ENSEMBLE, 10, 20).fields("x"), "directions"),
        (lambda: Dice(ENSEMBLE, 10, 20).weighted_sums(None), "weights"),
        (lambda: Summary.of(["x"]), "numbers"),
        (lambda: Summary.of([1.0]).quantile("x"), "probability"),
        (lambda: loop(ensemble=None), "ensemble"),
        (lambda: loop(etas=3), "etas"),
        (lambda: loop(etas=["x", "y"]), "etas"),
        (lambda: loop(etas=[0.0, np.inf]), "eta"),
        (lambda: loop(samples=0), "samples"),
        (lambda: loop(seed=-1), "seed"),
        (lambda: loop(start="spectral"), "start"),
        (lambda: loop(learner="x"), "learner"),
    ],
)
def test_wrong_arguments_are_named(call, name):
    with pytest.raises(OutlearnError, match=name):
        call()
