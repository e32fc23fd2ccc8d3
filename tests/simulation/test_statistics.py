"""Statistics that add exactly, and refuse what cannot be."""

import copy
import dataclasses
import itertools
import pickle

import numpy as np
import pytest

from outlearn.exceptions import DataError, ParameterError
from outlearn.simulation import RunRecord, Summary, TaskStats
from outlearn.simulation.statistics import QUANTITIES


def records(count, seed=0):
    rng = np.random.default_rng(seed)
    out = []
    for index in range(count):
        if index % 7 == 3:
            out.append(RunRecord(index=index, status="failed: ConvergenceError: too much"))
            continue
        R = rng.normal(0.5, 0.2)
        status = "max iter" if index % 5 == 2 else "converged"
        out.append(
            RunRecord(
                index=index,
                status=status,
                R=R,
                Q=R**2 + rng.exponential(0.3),
                z=None if index % 3 else 0.1,
                energy=rng.normal(),
                iterations=int(rng.integers(5, 500)),
                data_reads=7,
            )
        )
    return out


def test_the_numbers_are_numpys():
    runs = records(50)
    stats = TaskStats.of("id", runs)
    R = np.array([r.R for r in runs if r.R is not None])
    assert stats.R.count == R.size
    assert stats.R.mean == pytest.approx(R.mean(), rel=1e-14)
    assert pytest.approx(((R - R.mean()) ** 2).sum(), rel=1e-13) == stats.R.M2
    assert stats.R.std == pytest.approx(R.std(ddof=1), rel=1e-13)
    assert stats.R.standard_error == pytest.approx(R.std(ddof=1) / R.size**0.5, rel=1e-13)
    for p in (0.0, 0.05, 0.31, 0.5, 0.95, 1.0):
        assert stats.R.quantile(p) == pytest.approx(np.quantile(R, p), rel=1e-13)
    Phi = [np.arccos(np.clip(r.R / np.sqrt(r.Q), -1, 1)) / np.pi for r in runs if r.R is not None]
    assert stats.Phi.mean == pytest.approx(np.mean(Phi), rel=1e-13)
    assert stats.angle_of_means == pytest.approx(
        np.arccos(stats.R.mean / np.sqrt(stats.Q.mean)) / np.pi, rel=1e-13
    )


def test_failures_are_counted():
    stats = TaskStats.of("id", records(50))
    assert stats.n_runs == 50
    assert stats.n_failed == 7
    assert stats.statuses["max iter"] + stats.n_converged == 43
    assert stats.R.count == 43
    assert stats.z.count < 43


def test_adding_is_exact_in_any_order_and_grouping():
    runs = records(60)
    parts = [TaskStats.of("id", runs[k::4]) for k in range(4)]
    whole = TaskStats.of("id", runs)
    for order in itertools.permutations(parts):
        a, b, c, d = order
        assert a + (b + (c + d)) == ((a + b) + c) + d == whole
        assert (a + b + c + d).to_dict() == whole.to_dict()
    assert whole + TaskStats(strong_id="id") == whole


def test_statistics_are_sent_copied_and_hashed():
    stats = TaskStats.of("id", records(9))
    assert pickle.loads(pickle.dumps(stats)) == copy.deepcopy(stats) == stats
    assert len({stats, TaskStats.of("id", records(9)[::-1])}) == 1


def test_what_does_not_add():
    with pytest.raises(DataError, match="different tasks"):
        TaskStats(strong_id="a") + TaskStats(strong_id="b")
    with pytest.raises(DataError, match="twice"):
        TaskStats.of("a", [*records(3), records(1)[0]])


def test_statistics_of_nothing():
    stats = TaskStats(strong_id="id")
    assert stats.n_runs == 0
    assert np.isnan([stats.R.mean, stats.R.standard_error, stats.R.quantile(0.5)]).all()
    assert np.isnan(Summary.of([1.0]).standard_error)
    assert Summary.of([1.0]).quantile(0.9) == 1.0


def test_a_row_of_the_table_has_every_quantity():
    row = TaskStats.of("id", records(20)).to_dict()
    for name in QUANTITIES:
        assert {
            f"{name}_{part}" for part in ("count", "mean", "M2", "se", "q05", "q25", "q50", "q75", "q95")
        } <= set(row)
    assert (row["runs"], row["converged"] + row["failed"] <= 20) == (20, True)


def test_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        TaskStats(strong_id="id").strong_id = "other"
    with pytest.raises(TypeError):
        TaskStats.of("id", records(3)).statuses["converged"] = 99


@pytest.mark.parametrize(
    "values",
    [
        {"status": "converged"},  # no numbers
        {"status": "failed: x", "R": 0.1, "Q": 0.1},  # numbers of a failed run
        {"status": "converged", "R": 0.1},
        {"status": "", "R": 0.1, "Q": 0.1},
        {"status": "converged", "R": 1.0, "Q": 0.5},  # Cauchy-Schwarz
        {"status": "converged", "R": 0.1, "Q": float("nan")},
        {"status": "converged", "R": 0.1, "Q": 0.1, "energy": float("inf")},
        {"status": "converged", "R": 0.1, "Q": 0.1, "index": -1},
    ],
)
def test_runs_that_cannot_be(values):
    with pytest.raises(DataError):
        RunRecord(**({"index": 0} | values))


@pytest.mark.parametrize(
    "values",
    [
        {"statuses": {"converged": 2}},  # two runs without values
        {"statuses": {"converged": 0}},
        {"statuses": {"failed: x": 1}, "R": Summary.of([0.1])},
        {"R": Summary.of([0.1])},
        {"iterations": Summary.of([3])},
        {name: Summary.of([-0.5 if name == "Q" else 0.1]) for name in ("R", "Q", "Phi", "Delta")}
        | {"statuses": {"converged": 1}},
        {name: Summary.of([1.5 if name == "Phi" else 0.1]) for name in ("R", "Q", "Phi", "Delta")}
        | {"statuses": {"converged": 1}},
    ],
)
def test_statistics_that_cannot_be(values):
    with pytest.raises(DataError):
        TaskStats(strong_id="id", **values)


@pytest.mark.parametrize("values", [(2.0, 1.0), (float("nan"),), (0.0, float("inf"))])
def test_summaries_that_cannot_be(values):
    with pytest.raises(DataError):
        Summary(values)


def test_a_quantile_of_no_probability():
    with pytest.raises(ParameterError, match="probability"):
        Summary.of([1.0]).quantile(1.5)
