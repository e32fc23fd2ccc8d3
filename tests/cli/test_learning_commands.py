"""fit, predict and inspect: what a practitioner does from a shell."""

from __future__ import annotations

import io
import json
import sys

import numpy as np
import pandas as pd
import pytest

from outlearn.cli import main
from outlearn.model import Ensemble, sample

N_TRAIN = 250


@pytest.fixture(scope="module")
def data():
    drawn = sample(Ensemble.from_contamination(0.5, gamma=20.0), n_features=5, n_samples=500, rng=0)
    table = pd.DataFrame(drawn.X, columns=list("abcde"))
    table["same"] = 1.0
    table["note"] = "text"
    table["y"] = np.where(drawn.y > 0, "yes", "no")
    table["truth"] = np.where(drawn.informative, "informative", "garbage")  # text: no input
    return table


@pytest.fixture(scope="module")
def folder(data, tmp_path_factory):
    """A directory with data and a model, as `outlearn fit` leaves it."""
    path = tmp_path_factory.mktemp("work")
    data[:N_TRAIN].to_csv(path / "train.csv", index=False)
    clean = data[N_TRAIN:][data["truth"][N_TRAIN:] == "informative"]
    clean.to_csv(path / "clean.csv", index=False)
    assert main(["fit", f"{path / 'train.csv'}", "--label", "y", "-o", f"{path / 'model'}", *CHEAP]) == 0
    return path


CHEAP = ["--learner", "soft", "--covariance", "spherical", "--label-noise", "0"]


def run(capsys, *arguments, code=0):
    capsys.readouterr()
    assert main([str(a) for a in arguments]) == code
    return capsys.readouterr()


def test_fit_says_what_it_found_and_what_it_left_out(folder, tmp_path, capsys):
    out, err = run(capsys, "fit", folder / "train.csv", "-l", "y", "-o", tmp_path / "m", "--json", *CHEAP)
    found = json.loads(out)
    assert found["n_samples"] == N_TRAIN
    assert found["n_features"] == 5
    assert found["classes"] == ["no", "yes"]
    assert 0.3 < found["contamination"] < 0.7
    assert found["left_out"] == {
        "note": "not numeric",
        "truth": "not numeric",
        "same": "the same value in every row",
    }
    assert "left out columns 'note', 'truth': not numeric" in err
    assert [p.name for p in tmp_path.iterdir()] == ["m"]


def test_a_given_contamination_is_kept(folder, tmp_path, capsys):
    arguments = ("fit", folder / "train.csv", "-l", "y", "-o", tmp_path / "m", "--contamination", "0.25")
    out, _ = run(capsys, *arguments, *CHEAP)
    assert "0.25" in next(line for line in out.splitlines() if "contamination" in line)


def test_the_learner_is_chosen_where_none_is_named(folder, tmp_path, capsys):
    out, _ = run(capsys, "fit", folder / "train.csv", "-l", "y", "-o", tmp_path / "m", "--json")
    found = json.loads(out)
    assert found["learner"] == "auto"
    assert found["winner"]
    assert found["reason"]
    out, _ = run(capsys, "predict", folder / "clean.csv", "-m", tmp_path / "m", "-l", "y", "--json")
    assert json.loads(out)["accuracy"] > 0.95


def test_standard_input_gives_the_same_model(folder, tmp_path, capsys, monkeypatch):
    content = (folder / "train.csv").read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    run(capsys, "fit", "-", "-l", "y", "-o", tmp_path / "m", *CHEAP)
    first, _ = run(capsys, "predict", folder / "clean.csv", "-m", folder / "model")
    second, _ = run(capsys, "predict", folder / "clean.csv", "-m", tmp_path / "m")
    assert first == second


def test_predict_writes_classes_and_probabilities(folder, capsys):
    out, err = run(capsys, "predict", folder / "clean.csv", "--model", folder / "model", "--label", "y")
    found = pd.read_csv(io.StringIO(out))
    truth = pd.read_csv(folder / "clean.csv")
    assert list(found) == ["row", "prediction", "probability of no", "probability of yes"]
    assert list(found["row"]) == list(range(1, len(truth) + 1))
    np.testing.assert_allclose(found.iloc[:, 2:].sum(axis=1), 1.0)
    accuracy = (found["prediction"] == truth["y"]).mean()
    assert accuracy > 0.95
    assert f"{accuracy:.4f}" in err


def test_predict_finds_columns_by_name_whatever_their_order(folder, tmp_path, capsys):
    table = pd.read_csv(folder / "clean.csv")
    table[list("edcba")].to_parquet(tmp_path / "turned.parquet")
    turned, _ = run(capsys, "predict", tmp_path / "turned.parquet", "-m", folder / "model")
    straight, _ = run(capsys, "predict", folder / "clean.csv", "-m", folder / "model")
    assert turned == straight


def test_predict_to_a_file_and_as_json(folder, tmp_path, capsys):
    out, err = run(
        capsys,
        "predict",
        folder / "clean.csv",
        "-m",
        folder / "model",
        "-l",
        "y",
        "-o",
        tmp_path / "p.csv",
        "--json",
    )
    found = json.loads(out)
    assert found["accuracy"] > 0.95
    assert found["predictions"] is None
    assert len(pd.read_csv(tmp_path / "p.csv")) == len(pd.read_csv(folder / "clean.csv"))
    assert "p.csv" in err


def test_inspect_ranks_garbage_first(folder, data, tmp_path, capsys):
    out, err = run(
        capsys,
        "inspect",
        folder / "train.csv",
        "-l",
        "y",
        "-m",
        folder / "model",
        "-o",
        tmp_path / "r.csv",
        "--top",
        "3",
    )
    ranking = pd.read_csv(tmp_path / "r.csv")
    assert sorted(ranking["row"]) == list(range(1, N_TRAIN + 1))
    assert ranking["doubt"].is_monotonic_decreasing
    informative = data["truth"].to_numpy()[ranking["row"] - 1] == "informative"
    half = N_TRAIN // 2
    assert informative[:half].mean() < 0.3 < 0.7 < informative[half:].mean()
    assert sum(str(row) in out for row in ranking["row"][:3]) == 3
    assert f"of {N_TRAIN} examples are more likely garbage than not" in err


def test_inspect_fits_when_it_is_given_no_model(folder, capsys):
    out, _ = run(
        capsys, "inspect", folder / "train.csv", "-l", "y", "--json", "--top", "0", "--learner", "hebb"
    )
    found = json.loads(out)
    assert len(found["examples"]) == found["n_samples"] == N_TRAIN


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fit", "nowhere.csv", "-l", "y", "-o", "m"], "nowhere.csv: No such file or directory"),
        (["fit", ".", "-l", "y", "-o", "m"], "Is a directory"),
        (["fit", "bad.csv", "-l", "y", "-o", "m"], "bad.csv: the label 'y' has one class only"),
        (["fit", "train.csv", "-l", "z", "-o", "m"], "there is no column 'z'"),
        (["fit", "train.csv", "-l", "y", "-o", "no/m"], "no/m: there is no directory no"),
        (["fit", "train.csv", "-l", "y", "-o", "m", "--contamination", "2"], "contamination"),
        (["fit", "train.csv", "-l", "y", "-o", "m", "--contamination", "half"], "a number, or auto"),
        (["fit", "train.csv", "-l", "y", "-o", "m", "--covariance", "cubic"], "covariance"),
        (
            ["fit", "train.csv", "-l", "y", "-o", "m", "--learner", "hebb", "--contamination", "0"],
            "hebb does not",
        ),
        (["predict", "train.csv", "-m", "nowhere"], "nowhere"),
        (["predict", "train.csv", "-m", "cut"], "cut"),
        (["predict", "train.csv", "-m", "train.csv"], "train.csv"),
        (["predict", "bad.csv", "-m", "model"], "there is no column 'b'"),
        (["predict", "train.csv", "-m", "model", "-l", "truth"], "none of the model's classes no, yes"),
        (["inspect", "train.csv", "-l", "truth", "-m", "model"], "'truth' holds 'garbage'"),
        (["inspect", "train.csv", "-l", "y", "-m", "model", "--learner", "soft"], "without --learner"),
        (["inspect", "train.csv", "-l", "y", "-m", "cut"], "cut"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(folder, arguments, message, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    (folder / "bad.csv").write_text("a,y\n1,x\n2,x\n")
    (folder / "cut").write_bytes((folder / "model").read_bytes()[:100])
    before = sorted(p.name for p in folder.iterdir())
    out, err = run(capsys, *arguments, code=2)
    assert out == ""
    assert err.rstrip().count("\n") == err.count("left out")
    assert message in err
    assert sorted(p.name for p in folder.iterdir()) == before
