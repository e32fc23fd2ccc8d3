"""The store keeps every run once, and refuses files that are not its own."""

import os
import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pandas as pd
import pytest

from outlearn.exceptions import DataError
from outlearn.model import Ensemble
from outlearn.simulation import RunRecord, Store, Task, TaskStats
from outlearn.simulation import store as store_module

TASK = Task(learner="soft", ensemble=Ensemble(0.5, 10.0), n_features=10, alpha=2)
OTHER = Task(learner="hebb", ensemble=Ensemble(float("-inf"), 10.0), n_features=10, alpha=2)


def run(index, R=0.5):
    return RunRecord(
        index=index, status="converged", R=R, Q=0.9, z=0.1, energy=-1.25, iterations=9, data_reads=10
    )


@pytest.fixture
def path(tmp_path):
    return tmp_path / "runs.sqlite"


def test_what_goes_in_comes_out_to_the_last_bit(path):
    runs = [run(0, R=1 / 3), run(1, R=-1e-17), RunRecord(index=2, status="failed: ConvergenceError: x")]
    with Store(path) as store:
        assert store.add(2**70, TASK, runs) == 3
        store.add(1, OTHER, [run(0)])
    with Store(path, create=False) as store:
        assert store.runs(2**70, TASK) == runs
        assert store.runs(2**70, TASK, 2, start=1) == runs[1:2]
        assert store.runs(5, TASK) == []
        assert store.stats(2**70, TASK) == TaskStats.of(TASK.strong_id, runs)
        assert [(seed, task.label(), count) for seed, task, count in store.tasks()] == [
            (1, OTHER.label(), 1),
            (2**70, TASK.label(), 3),
        ]
        assert "2 tasks, 4 runs" in repr(store)


def test_a_run_is_kept_once(path):
    with Store(path) as first, Store(path) as second:
        assert first.add(0, TASK, [run(0), run(1)]) == 2
        assert second.add(0, TASK, [run(1, R=0.1), run(2)]) == 1
        assert [r.R for r in first.runs(0, TASK)] == [0.5, 0.5, 0.5]


def test_a_batch_is_written_whole_or_not_at_all(path):
    with Store(path) as store:
        broken = run(1)
        object.__setattr__(broken, "status", None)  # the column is NOT NULL
        store._db.execute(
            "CREATE TRIGGER stop BEFORE INSERT ON runs WHEN NEW.run = 1 BEGIN SELECT RAISE(ABORT, 'no'); END"
        )
        with pytest.raises(DataError):
            store.add(0, TASK, [run(0), run(1)])
        assert store.done(0, TASK) == set()


def test_claims_are_shared_out(path):
    with Store(path) as first, Store(path) as second:
        assert first.claim(0, TASK, range(4)) == [0, 1, 2, 3]
        assert first.claim(0, TASK, range(4)) == []
        assert second.claim(0, TASK, range(6)) == [4, 5]
        assert second.claim(1, TASK, [0]) == [0]  # another seed is another run
        first.add(0, TASK, [run(0)])
        first.release()
        assert second.claim(0, TASK, range(6)) == [1, 2, 3]
        assert second.claim(0, TASK, []) == []


def test_closing_gives_up_the_claims(path):
    with Store(path) as first:
        first.claim(0, TASK, range(4))
    with Store(path) as second:
        assert second.claim(0, TASK, range(4)) == [0, 1, 2, 3]


def test_claims_of_a_dead_process_lapse_at_once_of_a_silent_one_after_a_while(path, monkeypatch):
    code = (
        "import os, sys; from outlearn.simulation import Store, Task; from outlearn.model import Ensemble;"
        "task = Task(learner='soft', ensemble=Ensemble(0.5, 10.0), n_features=10, alpha=2);"
        "print(Store(sys.argv[1]).claim(0, task, range(4)), flush=True); os.kill(os.getpid(), 9)"
    )
    dead = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True)
    assert dead.stdout.strip() == "[0, 1, 2, 3]"
    with Store(path) as store, Store(path) as silent:
        assert store.claim(0, TASK, range(4)) == [0, 1, 2, 3]
        assert silent.claim(0, TASK, range(4, 6)) == [4, 5]
        now = store_module.time.time()
        monkeypatch.setattr(store_module.time, "time", lambda: now + 100.0)
        silent.renew()
        monkeypatch.setattr(store_module.time, "time", lambda: now + 190.0)
        assert store.claim(0, TASK, [4, 5]) == []
        monkeypatch.setattr(store_module.time, "time", lambda: now + 300.0)
        assert store.claim(0, TASK, [4, 5]) == [4, 5]


def test_a_claim_left_by_a_process_that_had_our_number(path):
    with Store(path) as store:
        store.claim(0, TASK, [0])
        store._db.execute("UPDATE claims SET owner = 'before us'")
        assert store.claim(0, TASK, [0]) == [0]


@pytest.mark.parametrize("each_run", [True, False])
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_export(path, tmp_path, ending, each_run):
    target = tmp_path / f"table.{ending}"
    with Store(path) as store:
        store.add(3, TASK, [run(k, R=0.1 * k) for k in range(5)])
        store.add(3, OTHER, [RunRecord(index=0, status="failed: x")])
        assert store.export(target, each_run=each_run) == (6 if each_run else 2)
        expected = store.to_frame(each_run=each_run)
    table = pd.read_csv(target) if ending == "csv" else pd.read_parquet(target)
    assert list(table.columns) == list(expected.columns)
    column = "R" if each_run else "R_mean"
    assert table[column].tolist()[1:] == expected[column].tolist()[1:]
    assert set(table["eta"]) == {0.5, float("-inf")}
    assert set(table["seed"]) == {3}


def test_exports_that_cannot_be(path, tmp_path):
    with Store(path) as store:
        with pytest.raises(DataError, match=r"\.csv or \.parquet"):
            store.export(tmp_path / "table.xls")
        with pytest.raises(DataError, match="no directory"):
            store.export(tmp_path / "nowhere" / "table.csv")


def test_an_empty_store_gives_an_empty_table(path):
    with Store(path) as store:
        assert len(store.to_frame()) == 0


def test_files_that_are_no_store(tmp_path):
    text = tmp_path / "notes.txt"
    text.write_text("not a database " * 100)
    with pytest.raises(DataError, match=r"notes\.txt.*not a campaign store"):
        Store(text)
    assert text.read_text() == "not a database " * 100
    foreign = tmp_path / "foreign.sqlite"
    with sqlite3.connect(foreign) as db:
        db.execute("CREATE TABLE runs (a)")
    db.close()
    before = foreign.read_bytes()
    with pytest.raises(DataError, match="another program"):
        Store(foreign)
    assert foreign.read_bytes() == before
    with pytest.raises(DataError, match="no such store"):
        Store(tmp_path / "missing.sqlite", create=False)
    with pytest.raises(DataError, match="no directory"):
        Store(tmp_path / "nowhere" / "runs.sqlite")
    empty = tmp_path / "empty.sqlite"
    empty.touch()
    with pytest.raises(DataError, match="is empty"):
        Store(empty, create=False)
    assert not empty.stat().st_size
    Store(empty).close()  # a runner that was killed at once may have left it
    with pytest.raises(DataError, match="is a directory"):
        Store(tmp_path)


def test_a_newer_layout_is_refused(path):
    Store(path).close()
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version = 99")
    db.close()
    with pytest.raises(DataError, match="version 99"):
        Store(path)


@pytest.mark.parametrize("damage", ["overwritten", "cut", "table", "column", "task", "value"])
def test_a_damaged_store_is_refused(path, damage):
    with Store(path) as store:
        store.add(0, TASK, [run(k) for k in range(400)])
    content = path.read_bytes()
    if damage == "overwritten":
        path.write_bytes(content[:4096] + os.urandom(len(content) - 4096))
    elif damage == "cut":
        path.write_bytes(content[: len(content) // 2])
    else:
        statement = {
            "table": "DROP TABLE claims",
            "column": "ALTER TABLE runs DROP COLUMN energy",
            "task": "UPDATE tasks SET definition = replace(definition, '10.0', '11.0')",
            "value": "UPDATE runs SET Q = 'many' WHERE run = 7",
        }[damage]
        with sqlite3.connect(path) as db:
            db.execute(statement)
        db.close()

    def read():
        with Store(path) as store:
            store.tasks()
            store.runs(0, TASK)

    with pytest.raises(DataError, match=r"runs\.sqlite"):
        read()


def test_runners_may_make_a_store_at_the_same_moment(tmp_path):
    together = threading.Barrier(4)

    def opened(path):
        together.wait()
        with Store(path) as store:
            return store.runs(1, TASK, 1)

    with ThreadPoolExecutor(4) as runners:
        for k in range(20):
            assert list(runners.map(opened, [tmp_path / f"{k}.sqlite"] * 4)) == [[]] * 4
