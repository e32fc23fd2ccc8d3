"""solve and sweep print what the library computes."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from outlearn import theory
from outlearn.cli import main
from outlearn.cli.learners import LEARNERS, learner
from outlearn.cli.sweep import parse_range
from outlearn.exceptions import ParameterError
from outlearn.model import Ensemble


def test_solve_prints_every_branch(capsys):
    assert main(["solve", "--alpha", "20", "--eta", "3.9", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    expected = theory.branches(theory.SoftSelection(), Ensemble(eta=3.9, gamma=10.0), 20)
    assert [p["R"] for p in found] == [p.R for p in expected]
    assert [p["branch"] for p in found] == [p.branch for p in expected]
    assert {p["name"] for p in found} == {"soft"}


def test_solve_compares_learners_in_one_table(capsys):
    arguments = ["solve", "--alpha", "20", "--contamination", "0.5", "-b", "equilibrium"]
    assert main([*arguments, "-L", "soft", "-L", "bayes", "-L", "hebb"]) == 0
    out = capsys.readouterr().out
    world = Ensemble.from_contamination(0.5, gamma=10.0)
    for rule in (theory.SoftSelection(), theory.BayesOptimal(), theory.Hebb()):
        assert f"{theory.solve(rule, world, 20).R:.6g}" in out


@pytest.mark.parametrize("name", LEARNERS)
def test_every_learner_has_a_name(name):
    assert isinstance(learner(name, beta=2.0, regularization=0.5), theory.Learner)


def test_options_reach_the_learner():
    assert learner("gibbs", beta=2.0).beta == 2.0
    assert learner("square", regularization=0.5).regularization == 0.5
    assert learner("hard-printed").equations == "printed"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["solve", "--alpha", "-1", "--eta", "0"], "alpha = -1.0 is not permitted"),
        (["solve", "--alpha", "1"], "give either --eta or --contamination"),
        (["solve", "--alpha", "1", "--eta", "0", "--contamination", "0.5"], "give either"),
        (["solve", "--alpha", "1", "--eta", "nan"], "eta = nan is not permitted"),
        (["solve", "--alpha", "1", "--eta", "0", "--gamma", "0"], "gamma = 0.0 is not permitted"),
        (["solve", "--alpha", "1", "--eta", "0", "-L", "perceptron"], "one of soft,"),
        (["solve", "--alpha", "1", "--eta", "0", "-b", "best"], "one of equilibrium,"),
        (["sweep", "--picture", "x.jpg"], "a name that ends in .png"),
        (["solve", "--alpha", "1", "--eta", "0", "--beta", "2"], "the learner gibbs to go with it"),
        (["sweep", "--regularization", "2", "-L", "hebb"], "regularization = 2.0 is not permitted"),
        (["sweep", "-L", "soft", "-L", "perceptron"], "one of soft,"),
        (["sweep", "--output", "x.parquet"], "must be .csv"),
        (["sweep", "--output", "nowhere/x.csv"], "there is no directory nowhere"),
        (["sweep", "--alphas", "0:3:1"], "alphas"),
        (["sweep", "--etas", "5:1:1"], "etas = '5:1:1' is not permitted"),
    ],
)
def test_bad_parameters_are_one_line(arguments, message, capsys):
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert message in err


@pytest.fixture(scope="module")
def sweep(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sweep")
    arguments = ["--alphas", "10:40:3:log", "--etas", "2:6:0.5", "-o", f"{folder / 'd.csv'}"]
    assert main(["sweep", *arguments, "--picture", f"{folder / 'd.png'}"]) == 0
    return folder


def test_sweep_writes_the_diagram_and_its_lines(sweep):
    table, lines = pd.read_csv(sweep / "d.csv"), pd.read_csv(sweep / "d-lines.csv")
    assert set(table["status"]) == {"CONVERGED"}
    assert table.groupby(["alpha", "eta"]).ngroups == 27
    at20 = lines[(lines["kind"] == "first order") & np.isclose(lines["alpha"], 20.0) & (lines["of"] == 0)]
    transition = theory.transitions(
        theory.SoftSelection(), Ensemble(3.0, 10.0), alpha=20, over="eta", between=(2, 6)
    )
    assert float(at20["eta"].iloc[0]) == pytest.approx(transition[0].value, abs=1e-6)
    point = table[np.isclose(table["alpha"], 20.0) & (table["eta"] == 2.0) & table["equilibrium"]]
    solved = theory.solve(theory.SoftSelection(), Ensemble(2.0, 10.0), 20.0)
    assert float(point["R"].iloc[0]) == pytest.approx(solved.R, abs=1e-8)


def test_sweep_draws_a_picture(sweep):
    assert (sweep / "d.png").read_bytes().startswith(b"\x89PNG")
    assert sorted(p.name for p in sweep.iterdir()) == ["d-lines.csv", "d.csv", "d.png"]


def test_sweep_names_files_after_several_learners(tmp_path, capsys):
    arguments = [
        "--alphas",
        "5",
        "--etas",
        "0:1:1",
        "-o",
        f"{tmp_path / 'd.csv'}",
        "-L",
        "soft",
        "-L",
        "hebb",
    ]
    assert main(["sweep", *arguments, "--json"]) == 0
    assert [d["name"] for d in json.loads(capsys.readouterr().out)] == ["soft", "hebb"]
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "d-hebb-lines.csv",
        "d-hebb.csv",
        "d-soft-lines.csv",
        "d-soft.csv",
    ]


@pytest.mark.parametrize("text", ["1:x:3:log", "0:5:3:log", "5:1:3:log", "1:5:1:log", "1:5:log", "x", "1:2"])
def test_ranges_that_make_no_sense_are_refused(text):
    with pytest.raises(ParameterError):
        parse_range("alphas", text)
