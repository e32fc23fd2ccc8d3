"""The same table whatever happens on the way: workers, order, interruptions, other runners, kill -9."""

import io
import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from outlearn.exceptions import DataError, OutlearnError, ParameterError
from outlearn.model import Ensemble, sample, soft_energy
from outlearn.simulation import (
    Campaign,
    Store,
    Task,
    grid,
    runs,
    standard_error,
    text_progress,
)
from outlearn.simulation import campaign as campaign_module
from outlearn.simulation import run as run_module
from outlearn.simulation.run import Streams, draw_truth, make_runs

TASKS = grid(learner=["soft", "hard"], eta=[0.0, 2.0], n_features=20, alpha=5, runs=12)


def text(result):
    """Every number with all its bits."""
    return json.dumps(result.to_dict())


@pytest.fixture(scope="module")
def reference():
    return text(Campaign(TASKS, seed=4).run())


def test_workers_do_not_change_a_bit(reference, tmp_path):
    with Store(tmp_path / "runs.sqlite") as store:
        assert text(Campaign(TASKS, seed=4).run(store, workers=2)) == reference
        assert store.tasks() == [
            (4, task, 12) for task in sorted(TASKS, key=lambda t: (t.learner, t.ensemble.eta))
        ]
    assert text(Campaign(TASKS, seed=5).run()) != reference


def test_workers_do_not_change_a_bit_of_matrix_free_runs():
    tasks = grid(
        learner=["soft", "hard", "amp"],
        start="hebb",
        eta=1.0,
        n_features=101,
        alpha=7,
        runs=6,
        draw="matrix-free",
    )
    tasks += grid(
        learner=["soft", "hard"], eta=[0.0, 2.0], n_features=33, alpha=4, runs=70, draw="matrix-free"
    )
    tasks += grid(learner=["hebb", "amp"], eta=1.0, n_features=101, alpha=7, runs=6, draw="dense")
    one, two = (text(Campaign(tasks, seed=4).run(workers=workers)) for workers in (1, 2))
    assert one == two


def test_batches_do_not_change_a_bit(monkeypatch, reference):
    monkeypatch.setattr(campaign_module, "_BATCH_RUNS", 5)
    assert text(Campaign(TASKS, seed=4).run()) == reference


def test_order_does_not_change_a_bit(reference):
    backwards = Campaign(TASKS[::-1], seed=4).run()
    assert text(Campaign(TASKS, seed=4).run()) == reference
    for task, stats in Campaign(TASKS, seed=4).run():
        assert backwards[task] == stats


def test_what_is_there_is_not_made_again(tmp_path, monkeypatch, reference):
    few = [Task.from_dict(task.to_dict() | {"runs": 5}) for task in TASKS]
    Campaign(few, seed=4).run(tmp_path / "runs.sqlite")
    made = []
    original = make_runs

    def counting(task, seed, indices):
        made.extend(indices)
        return original(task, seed, indices)

    monkeypatch.setattr(campaign_module, "make_runs", counting)
    assert text(Campaign(TASKS, seed=4).run(tmp_path / "runs.sqlite")) == reference
    assert sorted(made) == sorted(4 * list(range(5, 12)))
    made.clear()
    assert text(Campaign(TASKS, seed=4).run(tmp_path / "runs.sqlite")) == reference
    assert not made


def test_an_interrupt_keeps_what_is_done_and_gives_up_the_claims(tmp_path, monkeypatch, reference):
    path = tmp_path / "runs.sqlite"
    original = make_runs
    calls = []

    def interrupted(task, seed, indices):
        calls.append(indices)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return original(task, seed, indices)

    monkeypatch.setattr(campaign_module, "_BATCH_RUNS", 4)
    monkeypatch.setattr(campaign_module, "make_runs", interrupted)
    with Store(path) as store:
        with pytest.raises(KeyboardInterrupt):
            Campaign(TASKS, seed=4).run(store)
        assert store.done(4, TASKS[0]) == set(range(8))
        with Store(path) as other:
            assert other.claim(4, TASKS[0], range(12)) == [8, 9, 10, 11]
    monkeypatch.setattr(campaign_module, "make_runs", original)
    assert text(Campaign(TASKS, seed=4).run(path)) == reference


SCRIPT = """
import sys, time
from outlearn.simulation import Campaign, campaign, grid
campaign._BATCH_RUNS = 2  # many commits, so that the kill falls between two of them
tasks = grid(learner=["soft", "hard"], eta=[0.0, 2.0], n_features=20, alpha=5, runs=12)
def told(now):
    print(now.done, flush=True)
    time.sleep(0.05)
if __name__ == "__main__":
    Campaign(tasks, seed=4).run(sys.argv[1], workers=int(sys.argv[2]), progress=told)
"""


def start(tmp_path, workers):
    script = tmp_path / "campaign.py"
    script.write_text(SCRIPT)
    return subprocess.Popen(
        [sys.executable, script, tmp_path / "runs.sqlite", str(workers)],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env=os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
    )


@pytest.mark.parametrize("workers", [1, 2])
def test_kill_9_then_resume_gives_the_table_of_an_uninterrupted_run(tmp_path, reference, workers):
    with start(tmp_path, workers) as process:
        while int(process.stdout.readline()) < 10:
            pass
        os.kill(process.pid, signal.SIGKILL)
        process.communicate(timeout=60)  # ends only when the workers have closed the pipe too
    with Store(tmp_path / "runs.sqlite") as store:
        kept = sum(count for *_, count in store.tasks())
        assert 10 <= kept < 48
        assert text(Campaign(TASKS, seed=4).run(store)) == reference


def test_two_runners_on_one_store_do_not_count_twice(tmp_path, reference):
    processes = [start(tmp_path, 1) for _ in range(2)]
    for process in processes:
        process.communicate(timeout=120)
        assert process.returncode == 0
    with Store(tmp_path / "runs.sqlite") as store:
        assert [count for *_, count in store.tasks()] == [12] * 4
        assert text(Campaign(TASKS, seed=4).run(store)) == reference


def test_a_runner_waits_for_what_another_living_one_has_claimed(tmp_path, monkeypatch):
    task = TASKS[0]
    monkeypatch.setattr(campaign_module, "_POLL_SECONDS", 0.01)
    with Store(tmp_path / "runs.sqlite") as other, Store(tmp_path / "runs.sqlite") as store:
        assert other.claim(4, task, [3]) == [3]
        naps = []

        def deliver(seconds):
            naps.append(seconds)
            other.add(4, task, make_runs(task, 4, [3]))

        monkeypatch.setattr(campaign_module.time, "sleep", deliver)
        result = Campaign(task, seed=4).run(store)
    assert naps
    assert result[task].n_runs == 12


def test_a_stopping_rule_counts_the_first_runs_that_suffice(tmp_path):
    task = Task.from_dict(TASKS[0].to_dict() | {"runs": 200})
    rule = standard_error("Phi", at_most=0.003, every=5)
    with Store(tmp_path / "runs.sqlite") as store:
        one = Campaign(task, seed=1).run(store, stop_when=rule)
    two = Campaign(task, seed=1).run(workers=2, stop_when=rule)
    assert text(one) == text(two)
    stats = one[task]
    assert stats.Phi.standard_error <= 0.003
    assert stats.n_runs % 5 == 0
    earlier = Campaign(task, seed=1).run(stop_when=runs(stats.n_runs - 5))[task]
    assert earlier.n_runs < 10 or earlier.Phi.standard_error > 0.003
    # more runs in the store change nothing: the first that suffice are the ones that count
    with Store(tmp_path / "runs.sqlite") as store:
        Campaign(task, seed=1).run(store, stop_when=runs(80))
        assert text(Campaign(task, seed=1).run(store, stop_when=rule)) == text(one)
    unreachable = standard_error("Phi", at_most=1e-9)
    assert Campaign(TASKS[0], seed=1).run(stop_when=unreachable)[TASKS[0]].n_runs == 12


@pytest.mark.parametrize("name", ["soft_em", "soft_em_many"])
def test_failures_are_counted_not_dropped(monkeypatch, name):
    draw = "dense" if name == "soft_em_many" else "matrix-free"
    monkeypatch.setattr(run_module, "is_small", lambda *_: False)
    task = Task.from_dict(TASKS[0].to_dict() | {"draw": draw})
    original = getattr(run_module, name)

    def sometimes(reads, *, init, **settings):
        if (init[..., 0] > 0).any():
            raise OutlearnError("on purpose")
        return original(reads, init=init, **settings)

    monkeypatch.setattr(run_module, name, sometimes)
    stats = Campaign(task, seed=4).run()[task]
    assert stats.n_runs == 12
    assert stats.n_failed == stats.statuses["failed: OutlearnError: on purpose"]
    assert 0 < stats.n_failed < 12
    assert stats.R.count == 12 - stats.n_failed


def test_a_run_that_does_not_converge_is_kept_and_said_so():
    task = Task(
        learner="soft",
        ensemble=Ensemble(4.0, 10.0),
        n_features=20,
        alpha=20,
        max_iter=3,
        runs=4,
        draw="dense",
    )
    stats = Campaign(task).run()[task]
    assert stats.statuses == {"max iter": 4}
    assert stats.R.count == 4
    assert stats.n_converged == 0


def test_a_bug_is_not_a_failed_run(monkeypatch):
    monkeypatch.setattr(run_module, "soft_em_many", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        Campaign(TASKS[0], seed=4).run()


def test_a_worker_that_dies_is_said_so_and_gives_up_its_claims(monkeypatch, tmp_path):
    monkeypatch.setattr(campaign_module, "make_runs", lambda *_: os._exit(1))
    with Store(tmp_path / "runs.sqlite") as store:
        with pytest.raises(OutlearnError, match="a worker died while it made runs"):
            Campaign(TASKS[:1], seed=4).run(store, workers=2)
        assert store.claim(4, TASKS[0], range(12)) == list(range(12))


def test_the_energy_is_the_models_without_the_constants_of_the_data():
    ensemble = Ensemble(eta=1.0, gamma=10.0, gamma_tilde=8.0)
    task = Task(learner="soft", ensemble=ensemble, n_features=20, alpha=10, start="hebb", draw="dense")
    (record,) = make_runs(task, 3, [5])
    streams = Streams.of(3, task, 5)
    data = sample(ensemble, 20, 200, streams.data, center=draw_truth(20, streams.truth))
    # at J = 0 the selection term is P ln(1 + e^-eta), the prior's is its normalisation
    constants = soft_energy(np.zeros(20), data.X, data.y, ensemble) + 200 * np.logaddexp(0.0, -1.0)
    h = data.y * (data.X @ np.zeros(20))
    assert not h.any()
    from outlearn.inference.soft import soft_em

    fit = soft_em(
        data.X, data.y, contamination=1 / (1 + np.exp(-1.0)), noise_variance=1 / 8.0, init="hebb", tol=1e-8
    )
    J = np.sqrt(20) * fit.center
    direct = soft_energy(J, data.X, data.y, ensemble)
    at_zero = -200 * np.log1p(np.exp(-1.0))  # the sum over the loss -ln(1 + e^-eta) at J = 0
    assert record.energy * 20 == pytest.approx(
        direct - (constants - 200 * np.logaddexp(0.0, -1.0)) + at_zero, rel=1e-6
    )
    assert pytest.approx(J @ J / 20, rel=1e-4) == record.Q


def test_progress_is_told_and_ends_at_the_total():
    told = []
    Campaign(TASKS, seed=4).run(progress=told.append)
    assert [now.done for now in told] == sorted(now.done for now in told)
    assert (told[-1].done, told[-1].total, told[-1].fresh) == (48, 48, 48)
    assert told[-1].remaining == 0.0
    out = io.StringIO()
    Campaign(TASKS, seed=4).run(progress=text_progress(out))
    assert out.getvalue().rstrip(" ").endswith("0:00 left   \n") or "48/48 runs" in out.getvalue()


def test_the_table():
    result = Campaign(TASKS, seed=4).run()
    frame = result.to_frame()
    assert len(frame) == 4
    assert {"eta", "learner", "R_mean", "R_se", "Phi_q50", "failed", "strong_id"} <= set(frame.columns)
    assert "soft from random N=20" in repr(result)
    with pytest.raises(KeyError):
        result[Task.from_dict(TASKS[0].to_dict() | {"alpha": 6.0})]


@pytest.mark.parametrize(
    ("tasks", "seed", "name"),
    [
        ([], 0, "tasks"),
        ([1], 0, "tasks"),
        ([TASKS[0], TASKS[0]], 0, "tasks"),
        (TASKS, -1, "seed"),
        (TASKS, 0.5, "seed"),
    ],
)
def test_bad_campaigns_are_named(tasks, seed, name):
    with pytest.raises(ParameterError, match=name):
        Campaign(tasks, seed)


@pytest.mark.parametrize("workers", [0, 1.5, True])
def test_bad_workers_are_named(workers):
    with pytest.raises(ParameterError, match="workers"):
        Campaign(TASKS[:1]).run(workers=workers)


@pytest.mark.parametrize(
    "arguments",
    [{"quantity": "S", "at_most": 1.0}, {"at_most": 0.0}, {"at_most": "x"}, {"at_most": 1.0, "every": 0}],
)
def test_bad_stopping_rules_are_named(arguments):
    with pytest.raises(ParameterError):
        standard_error(**arguments)


def test_a_dask_cluster_gives_the_same_bits(reference):
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        assert text(Campaign(TASKS, seed=4).run(cluster=client)) == reference


def test_a_cluster_that_is_none():
    with pytest.raises(ParameterError, match="cluster"):
        Campaign(TASKS[:1]).run(cluster=3)
    with pytest.raises(DataError, match="no Dask scheduler answers at 'nowhere'"):
        Campaign(TASKS[:1]).run(cluster="nowhere")
