"""``outlearn simulate`` and ``outlearn results``: what they print, keep, and refuse."""

import json
import os
import pty
import signal
import subprocess
import sys
import threading
import time

import pandas as pd
import pytest

from outlearn.cli import main
from outlearn.exceptions import ConvergenceError

SMALL = ["simulate", "--alpha", "5", "--eta", "0:2:1", "--n-features", "20", "--runs", "6", "--workers", "1"]


def run(capsys, *arguments, code=0):
    assert main(list(map(str, arguments))) == code
    return capsys.readouterr()


def test_json_holds_every_statistic(capsys):
    found = json.loads(run(capsys, *SMALL, "-L", "soft", "-L", "hebb", "--json").out)
    assert found["seed"] == 0
    assert [(row["learner"], row["eta"]) for row in found["tasks"]] == [
        (learner, eta) for learner in ("soft", "hebb") for eta in (0.0, 1.0, 2.0)
    ]
    assert all(row["runs"] == 6 and row["failed"] == 0 for row in found["tasks"])
    assert found["tasks"][0]["R_mean"] > 0.9
    again = json.loads(run(capsys, *SMALL, "--seed", 1, "--json").out)
    assert again["tasks"][0]["R_mean"] != found["tasks"][0]["R_mean"]


def test_a_store_is_kept_listed_exported_checked(capsys, tmp_path):
    store = tmp_path / "runs.sqlite"
    table = run(capsys, *SMALL, "--store", store, "--output", tmp_path / "table.csv").out
    assert "soft" in table
    first = run(capsys, *SMALL, "--store", store, "--json").out
    assert first == run(capsys, *SMALL, "--json").out
    assert len(pd.read_csv(tmp_path / "table.csv")) == 3
    listed = json.loads(run(capsys, "results", "list", store, "--json").out)
    assert [row["R_mean"] for row in listed] == [row["R_mean"] for row in json.loads(first)["tasks"]]
    assert "learner" in run(capsys, "results", "list", store).out
    assert "18 rows" in run(capsys, "results", "export", store, "-o", tmp_path / "runs.parquet").err
    assert len(pd.read_parquet(tmp_path / "runs.parquet")) == 18
    run(capsys, "results", "export", store, "-o", tmp_path / "runs.csv", "--summary")
    assert len(pd.read_csv(tmp_path / "runs.csv")) == 3
    assert "is the store" in run(capsys, "results", "export", store, "-o", store, code=2).err
    assert "is sound: 3 tasks, 18 runs, 0" in run(capsys, "results", "check", store).err
    assert json.loads(run(capsys, "results", "check", store, "--json").out)["runs"] == 18


def test_contamination_in_place_of_eta_and_a_stopping_rule(capsys):
    arguments = [
        "simulate",
        "-a",
        5,
        "-c",
        0.5,
        "-n",
        20,
        "-r",
        200,
        "-w",
        1,
        "--standard-error",
        0.01,
        "--json",
    ]
    (row,) = json.loads(run(capsys, *arguments).out)["tasks"]
    assert row["eta"] == 0.0
    assert row["runs"] < 200
    assert row["Phi_se"] <= 0.01


def test_scaling(capsys, tmp_path):
    store = tmp_path / "runs.sqlite"
    run(
        capsys, "simulate", "-a", 5, "-e", "0:7:1", "-n", 8, "-n", 16, "-r", 40, "-w", 1, "--store", store,
        "-L", "soft", "-L", "hebb",
    )  # fmt: skip
    assert "differ in N and eta only" in run(capsys, "results", "scaling", store, code=2).err
    found = json.loads(
        run(capsys, "results", "scaling", store, "-L", "soft", "--estimator", "variance", "--json").out
    )
    assert [onset["n_features"] for onset in found[0]["onsets"]] == [8, 16]
    assert "variance" in run(capsys, "results", "scaling", store, "-L", "soft", "--estimator", "variance").out
    assert (
        "estimator" in run(capsys, "results", "scaling", store, "-L", "soft", "--estimator", "x", code=2).err
    )


def test_failed_runs_are_said(capsys, monkeypatch):
    def fail(*_, **__):
        raise ConvergenceError("on purpose")

    monkeypatch.setattr("outlearn.simulation.run.soft_em_many", fail)
    err = run(capsys, *SMALL, "--draw", "dense").err
    assert "18 of 18 runs failed, the first with: ConvergenceError: on purpose" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["simulate", "-a", 5, "-n", 20], "either --eta or --contamination"),
        (["simulate", "-a", 5, "-n", 20, "-e", 1, "-c", 0.5], "either --eta or --contamination"),
        (["simulate", "-a", 5, "-n", 20, "-e", "2:1:1"], "FROM:TO:STEP"),
        (["simulate", "-a", "many", "-n", 20, "-e", 1], "FROM:TO:STEP"),
        (["simulate", "-a", 5, "-n", 0, "-e", 1], "n_features = 0"),
        (["simulate", "-a", 5, "-n", 20, "-e", 1, "-L", "svm"], "learner = 'svm'"),
        (["simulate", "-a", 5, "-n", 20, "-e", 1, "--of", "S", "--standard-error", 1], "quantity = 'S'"),
        (["simulate", "-a", 5, "-n", 20, "-e", 1, "--of", "S"], "quantity = 'S'"),
        (["simulate", "-a", 5, "-n", 20, "-e", 1, "--of", "Q"], "--of goes with --standard-error"),
        (["simulate", "-a", 5, "-n", 20, "-e", 1, "-w", 1, "--scheduler", "tcp://h:1"], "--scheduler"),
        (["simulate", "-a", 5, "-n", 20, "-e", 1, "-s", "x.csv", "-o", "./x.csv"], "is the store"),
        (["simulate", "-a", 1e300, "-n", 20, "-e", 1], "what memory holds"),
        (["simulate", "-a", 5, "-n", 10**9, "-e", 1], "what memory holds"),
        (["reproduce", "1", "--page", "x.md"], "page = 'x.md'"),
        (["demo", "--output", __file__], "is not a directory"),
        (["simulate", "-a", 5, "-n", 20, "-e", 1, "-o", "nowhere/x.csv"], "there is no directory"),
        (["simulate", "-a", 5, "-n", 20, "-e", 1, "-o", "x.txt"], "must be .csv"),
        (["results", "list", "missing.sqlite"], "there is no such store"),
        (["results", "check", __file__], "not a campaign store"),
        (["results", "export", __file__, "-o", "x.csv"], "not a campaign store"),
        (["results", "export", __file__, "-o", "x.txt"], "x.txt: the ending must be .csv or .parquet"),
    ],
)
def test_bad_input_is_one_line(capsys, monkeypatch, tmp_path, arguments, message):
    monkeypatch.chdir(tmp_path)
    err = run(capsys, *arguments, code=2).err
    assert message in err
    assert err.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_an_interrupt_at_a_screen_keeps_what_is_done(tmp_path):
    """With a bar on a pseudo-terminal, Ctrl-C once the first runs are in the store."""
    store = tmp_path / "runs.sqlite"
    code = "import sys; from outlearn.cli import main; sys.exit(main())"
    arguments = ["simulate", "-a", "20", "-e", "3.5", "-n", "100", "-r", "100000", "--workers", "1"]
    master, slave = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", code, *arguments, "--store", store],
        stderr=slave,
        stdout=subprocess.PIPE,
        env=os.environ | {"OMP_NUM_THREADS": "1", "TERM": "xterm"},
        # a suite that runs in the background ignores interrupts, and so would its children
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        os.close(slave)
        limit = threading.Timer(60.0, process.kill)
        limit.start()
        shown = b""
        while b" left" not in shown:
            shown += os.read(master, 4096)
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        try:
            while chunk := os.read(master, 4096):
                shown += chunk
        except OSError:  # the other end has gone
            pass
        limit.cancel()
        assert process.wait(timeout=30) == 130
    os.close(master)
    assert b"run the same command again to go on" in shown
    assert main(["results", "check", str(store)]) == 0
