"""A task's name is fixed by all that defines its runs, and by nothing else."""

import dataclasses
import subprocess
import sys

import numpy as np
import pytest

from outlearn.exceptions import DataError, ParameterError
from outlearn.model import Ensemble
from outlearn.simulation import Task, grid
from outlearn.simulation import task as task_module

BASE = {
    "learner": "soft",
    "ensemble": Ensemble(eta=1.0, gamma=10.0),
    "n_features": 100,
    "alpha": 20,
    "draw": "dense",
}


def test_the_name_is_the_same_in_another_process_and_written_down():
    name = Task(**BASE).strong_id
    code = (
        "from outlearn.model import Ensemble; from outlearn.simulation import Task;"
        "e = Ensemble(1, 10);"
        "print(Task(draw='dense', alpha=20.0, n_features=100, ensemble=e, learner='soft').strong_id)"
    )
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert other.stdout.strip() == name
    # rows of old stores are found by this name: it changes only together with _MEANING
    assert name == "b809ddc6e52140bdf037cf28320c0227538110e2b18b745b30c58fc3b71a012a"


@pytest.mark.parametrize(
    "change",
    [
        {"learner": "hard"},
        {"ensemble": Ensemble(eta=1.5, gamma=10.0)},
        {"ensemble": Ensemble(eta=1.0, gamma=10.0, gamma_tilde=9.0)},
        {"n_features": 101},
        {"alpha": 21},
        {"start": "hebb"},
        {"max_iter": 10},
        {"tol": 1e-6},
        {"accelerate": True},
        {"learn": ("contamination",)},
        {"draw": "matrix-free"},
        {"dtype": "float32"},
    ],
)
def test_everything_that_defines_a_run_changes_the_name(change):
    assert Task(**BASE | change).strong_id != Task(**BASE).strong_id


def test_the_number_of_runs_and_the_spelling_do_not(monkeypatch):
    name = Task(**BASE).strong_id
    assert Task(**BASE, runs=7).strong_id == name
    assert Task(**BASE | {"alpha": np.float64(20.0), "n_features": np.int64(100)}).strong_id == name
    zeros = [Task(**BASE | {"ensemble": Ensemble(zero, 10.0)}).strong_id for zero in (0.0, -0.0, 0)]
    assert len(set(zeros)) == 1
    both = Task(**BASE, learn=("noise_variance", "contamination"))
    assert both.strong_id == Task(**BASE, learn=["contamination", "noise_variance"]).strong_id
    hebb = Task(**BASE | {"learner": "hebb"})
    assert hebb.strong_id == Task(**BASE | {"learner": "hebb", "start": "teacher"}).strong_id
    monkeypatch.setitem(task_module._MEANING, "dense", 99)
    assert Task(**BASE).strong_id != name


def test_there_and_back():
    for task in [
        Task(**BASE),
        Task(**BASE | {"ensemble": Ensemble(-np.inf, 2.0, 3.0, 0.5)}, learn="contamination", runs=3),
        Task(**BASE | {"learner": "amp", "start": "teacher", "draw": "auto"}),
    ]:
        assert Task.from_dict(task.to_dict()) == task
    with pytest.raises(DataError, match="meaning"):
        Task.from_dict(Task(**BASE).to_dict() | {"meaning": 99})
    with pytest.raises(DataError, match="definition"):
        Task.from_dict({"learner": "soft"})


def test_the_draw_is_chosen_by_cost():
    auto = BASE | {"draw": "auto"}
    assert Task(**auto).draw == "matrix-free"  # whole runs of plain EM are compiled
    assert Task(**auto, learn="contamination").draw == "dense"
    assert Task(**auto | {"n_features": 20, "alpha": 5}).draw == "dense"
    large = BASE | {"draw": "auto", "n_features": 20_000}
    assert Task(**large).draw == "matrix-free"
    assert Task(**large, start="spectral").draw == "dense"
    # hundreds of iterations make the many vectors dearer than a matrix that is not large
    hard_to_learn = BASE | {"draw": "auto", "n_features": 1000, "ensemble": Ensemble(5.0, 10.0)}
    assert Task(**hard_to_learn).draw == "dense"


def test_a_task_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Task(**BASE).alpha = 3.0


def test_a_grid_is_every_combination():
    tasks = grid(
        eta=[0.0, 1.0], gamma=[5.0, 10.0], learner=["soft", "hebb"], n_features=10, alpha=[1, 2], runs=3
    )
    assert len({task.strong_id for task in tasks}) == 16
    assert {task.runs for task in tasks} == {3}
    (mismatched,) = grid(eta=0.0, gamma_tilde=5.0, eta_tilde=1.0, learner="soft", n_features=10, alpha=1)
    assert (mismatched.ensemble.gamma_tilde, mismatched.ensemble.eta_tilde) == (5.0, 1.0)


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"learner": "svm"}, "learner"),
        ({"ensemble": 3.0}, "ensemble"),
        ({"n_features": 0}, "n_features"),
        ({"n_features": 2.0}, "n_features"),
        ({"alpha": -1}, "alpha"),
        ({"alpha": float("nan")}, "alpha"),
        ({"alpha": True}, "alpha"),
        ({"alpha": 0.001}, "alpha"),
        ({"runs": 0}, "runs"),
        ({"start": "here"}, "start"),
        ({"start": "soft"}, "start"),
        ({"start": None}, "start"),
        ({"max_iter": 0}, "max_iter"),
        ({"tol": 0.0}, "tol"),
        ({"tol": 1.0}, "tol"),
        ({"learn": 3}, "learn"),
        ({"accelerate": 1}, "accelerate"),
        ({"learn": "eta"}, "learn"),
        ({"draw": "sparse"}, "draw"),
        ({"draw": "matrix-free", "start": "spectral"}, "draw"),
        ({"dtype": "float16"}, "dtype"),
        ({"ensemble": Ensemble(800.0, 10.0)}, "eta_tilde"),
    ],
)
def test_bad_tasks_are_named(change, name):
    with pytest.raises(ParameterError, match=name):
        Task(**BASE | change)
