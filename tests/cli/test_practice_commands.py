"""diagnose, plan and report from the command line: what they print, write, and refuse."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from outlearn import cli
from outlearn.model import Ensemble, sample


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    data = sample(Ensemble.from_contamination(0.7, gamma=8.0), 12, 240, 0)
    frame = pd.DataFrame(data.X, columns=[f"x{k}" for k in range(12)])
    frame["y"] = np.where(data.y > 0, "sick", "healthy")
    path = tmp_path_factory.mktemp("practice") / "data.csv"
    frame.to_csv(path, index=False)
    return path


def run(capsys, *arguments):
    code = cli.main([str(a) for a in arguments])
    streams = capsys.readouterr()
    return code, streams.out, streams.err


def test_diagnose_prints_the_verdict_first_and_writes_verdicts(table, tmp_path, capsys):
    code, out, err = run(capsys, "diagnose", table, "--label", "y", "-o", tmp_path / "v.csv")
    assert code == 0, err
    assert "of the examples are garbage" in out.splitlines()[0]
    written = pd.read_csv(tmp_path / "v.csv")
    assert len(written) == 240
    assert set(written["verdict"]) <= {"keep", "doubtful", "discard"}
    assert set(written["label"]) == {"sick", "healthy"}
    assert written["row"].tolist() == list(range(1, 241))


def test_diagnose_as_json(table, capsys):
    code, out, _ = run(capsys, "diagnose", table, "--label", "y", "--json", "--classes", "sick, healthy")
    found = json.loads(out)
    assert code == 0
    assert found["effective"]["contamination"]["low"] < 0.7 < found["effective"]["contamination"]["high"]
    assert len(found["predictions"]) == 6
    assert [example["row"] for example in found["verdicts"]["examples"]] == list(range(1, 241))


def test_plan_from_data_and_from_an_ensemble(table, tmp_path, capsys):
    curves = tmp_path / "c.csv"
    code, out, _ = run(capsys, "plan", table, "-l", "y", "-t", "0.1", "--kind", "direction", "-o", curves)
    assert code == 0
    assert "Rows to check first" in out
    assert set(pd.read_csv(curves)["learner"]) == {"bayes", "soft", "hard", "hebb", "logistic", "lda"}
    options = ("--contamination", "0.7", "--gamma", "8", "--features", "50", "--json")
    code, out, _ = run(capsys, "plan", "-t", "0.1", "--kind", "direction", *options)
    assert code == 0
    assert json.loads(out)["reachable"] is True


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("diagnose", "TABLE", "--label", "z"), "z"),
        (("diagnose", "TABLE", "--label", "y", "--fdr", "0.9"), "fdr"),
        (("diagnose", "TABLE", "--label", "y", "--classes", "sick"), "separated by a comma"),
        (("diagnose", "TABLE", "--label", "y", "--covariance", "round"), "structure"),
        (("diagnose", "nowhere.csv", "--label", "y"), "nowhere.csv"),
        (("plan", "-t", "0.1", "--gamma", "8"), "contamination"),
        (("plan", "TABLE", "-t", "0.1"), "label"),
        (("plan", "TABLE", "-l", "y", "-t", "0.9"), "target_error"),
        (("plan", "TABLE", "-l", "y", "-t", "0.1", "--gamma", "8"), "gamma"),
        (("report", "TABLE", "--label", "y", "-t", "0"), "target_error"),
        (("report", "TABLE", "--label", "y", "-o", "no/such/place.html"), "no directory"),
    ],
)
def test_bad_input_is_one_line_and_code_two(table, arguments, words, capsys):
    code, out, err = run(capsys, *(table if a == "TABLE" else a for a in arguments))
    assert code == 2
    assert out == ""
    assert words in err
    assert len(err.strip().splitlines()) == 1


@pytest.mark.parametrize("command", ["diagnose", "report", "plan"])
def test_data_of_too_few_examples_are_named(command, tmp_path, capsys):
    path = tmp_path / "few.csv"
    path.write_text("a,y\n1,no\n2,no\n3,no\n4,no\n5,yes\n")
    options = {"plan": ("-t", "0.1"), "report": ("-o", tmp_path / "r.html")}.get(command, ())
    code, _, err = run(capsys, command, path, "-l", "y", *options)
    assert code == 2
    assert err == f"outlearn: {path}: class yes has 1 example: at least 4 are needed\n"
    assert list(tmp_path.iterdir()) == [path]


def test_a_plan_without_a_signal_fails_with_code_one(tmp_path, capsys):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((80, 10)))
    frame["y"] = rng.integers(0, 2, 80)
    path = tmp_path / "noise.csv"
    frame.to_csv(path, index=False)
    code, out, _ = run(capsys, "plan", path, "-l", "y", "-t", "0.1")
    assert code == 1
    assert out.startswith("No signal")
    code, out, _ = run(capsys, "plan", path, "-l", "y", "-t", "0.1", "--json")
    assert code == 1
    assert json.loads(out)["verdict"].startswith("No signal")


def test_classes_are_found_by_their_names():
    from outlearn.cli.diagnose import pair

    assert pair(None, [0, 1]) is None
    assert pair("true, FALSE", [True, False]) == (True, False)
    assert pair("a, b,c", ["a, b", "c"]) == ("a, b", "c")
