"""Every figure at a tiny size: files, what is in them, resuming, the page."""

from __future__ import annotations

import json
import math

import numpy as np
import pandas as pd
import pytest

from outlearn import theory
from outlearn.cli import main
from outlearn.exceptions import DataError, ParameterError
from outlearn.figures.compare import THEORY, agree, branch_lines, verdict
from outlearn.figures.fig9_detection import area, true_positives
from outlearn.figures.page import write_page
from outlearn.figures.plate import Setting
from outlearn.figures.reproduce import PLATES, make, names
from outlearn.model import Ensemble
from outlearn.simulation import Task


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """All figures, made once."""
    out = tmp_path_factory.mktemp("figures")
    make(["all"], Setting(size="tiny"), out)
    return out


def test_every_figure_leaves_its_files(folder) -> None:
    for name in PLATES:
        stem = name if name == "large" else f"fig{name}"
        summary = json.loads((folder / f"{stem}.json").read_text(), parse_constant=pytest.fail)
        assert summary["findings"]
        assert len(pd.read_csv(folder / f"{stem}.csv"))
        if name != "large":
            assert (folder / f"{stem}.png").read_bytes().startswith(b"\x89PNG")
            assert "<svg" in (folder / f"{stem}.svg").read_text()[:600]


def test_tables_hold_the_curves_that_are_drawn(folder) -> None:
    rows = pd.read_csv(folder / "fig1.csv")
    exact = rows[(rows.series == "soft") & (rows.kind == "equilibrium")].iloc[5]
    solved = theory.solve(theory.SoftSelection(), Ensemble(0.0, 10.0), exact.x)
    assert exact.y == pytest.approx(solved.distance, abs=1e-9)
    runs = rows[rows.kind == "runs"]
    assert (runs.standard_error < runs.standard_deviation).all()
    assert set(runs.series) == {"soft, runs", "hebb, runs"}


@pytest.mark.parametrize("name", ["2", "4", "6"])
def test_branch_figures_hold_every_kind_of_branch(folder, name) -> None:
    rows = pd.read_csv(folder / f"fig{name}.csv")
    assert {"equilibrium", "metastable", "unstable", "printed", "runs"} <= set(rows.kind)
    assert {"bayes"} <= {series.split(",")[0] for series in rows.series}


def test_figure_7_shows_the_print_and_that_learning_pays(folder) -> None:
    rows = pd.read_csv(folder / "fig7.csv")
    printed = rows[rows.series == "hard, printed"]
    assert printed.x.min() == pytest.approx(0.278, abs=1e-3)
    assert (rows[(rows.panel == "b") & (rows.kind == "equilibrium")].y > 0.0).all()


def test_what_is_made_again_needs_no_new_runs(folder) -> None:
    seen = []
    make(["1"], Setting(size="tiny", progress=seen.append), folder)
    assert seen
    assert all(now.fresh == 0 for now in seen)


def test_pictures_and_tables_do_not_depend_on_when_they_are_made(folder, tmp_path) -> None:
    make(["7"], Setting(size="tiny"), tmp_path)
    for ending in ("csv", "svg"):
        assert (tmp_path / f"fig7.{ending}").read_bytes() == (folder / f"fig7.{ending}").read_bytes()


def test_page_is_written_from_what_the_figures_left(folder, tmp_path) -> None:
    page = write_page(folder, tmp_path / "reproduction.md").read_text()
    assert all(f"## Figure {name}" in page for name in PLATES if name != "large")
    assert "## Claim by claim" in page
    assert "within 3 standard errors" in page
    columns = 0
    for line in page.splitlines():
        bars = line.count("|") - line.count("\\|")  # of a table all rows have the same columns, and no NaN
        assert not line.startswith("|") or (bars == (columns or bars) and "nan" not in line)
        columns = bars if line.startswith("|") else 0
        if line.startswith("!["):
            assert (tmp_path / line.split("(")[1].rstrip(")")).exists()


def test_page_says_what_is_missing(tmp_path) -> None:
    with pytest.raises(DataError, match="outlearn reproduce 1 2 3"):
        write_page(tmp_path, tmp_path / "page.md")


@pytest.mark.parametrize("n", [40, 240])
def test_branches_meet_where_energies_are_equal(n) -> None:
    e = Ensemble(0.0, 10.0)
    lines = branch_lines(THEORY["soft"], e, 20.0, over="eta", between=(3.0, 5.0), n=n)
    (jump,) = theory.transitions(THEORY["soft"], e, 20.0, over="eta", between=(3.0, 5.0))
    equilibrium = sorted((line for line in lines if line.kind == "equilibrium"), key=lambda line: line.x[0])
    assert equilibrium[0].x[-1] == pytest.approx(jump.value, abs=1e-9)
    assert equilibrium[-1].x[0] == pytest.approx(jump.value, abs=1e-9)
    assert equilibrium[0].x[0] == 3.0
    assert equilibrium[-1].x[-1] == 5.0
    unstable = [line for line in lines if line.kind == "unstable"]
    assert min(line.x.min() for line in unstable) == pytest.approx(jump.lower_spinodal, abs=1e-6)
    assert max(line.x.max() for line in unstable) == pytest.approx(jump.upper_spinodal, abs=1e-6)
    solved = theory.solve(THEORY["soft"], e.replace(eta=3.0), 20.0)
    assert equilibrium[0].angle[0] == pytest.approx(solved.angle, abs=1e-9)


def test_verdict_tells_runs_that_agree_from_runs_that_do_not() -> None:
    task = Task(learner="hebb", ensemble=Ensemble(0.0, 10.0), n_features=100, alpha=4.0, runs=40)
    other = Task(learner="hebb", ensemble=Ensemble(1.0, 10.0), n_features=100, alpha=4.0, runs=40)
    made = Setting().runs([task, other])
    good = agree([(task, made[task])])
    bad = agree([(task, made[other])])  # runs of another ensemble
    assert max(abs(x) for x in good[0].pulls.values()) < 3.0
    assert max(abs(x) for x in bad[0].pulls.values()) > 10.0
    assert verdict(good)[0].startswith("1 of 1")
    assert verdict(bad)[0].startswith("0 of 1")
    assert "standard errors" in verdict(bad)[1]


def test_area_is_the_integral_of_the_curve() -> None:
    middle = (np.arange(20000) + 0.5) / 20000
    assert area(1.3) == pytest.approx(float(true_positives(middle, 1.3).mean()), abs=1e-5)
    assert area(0.0) == 0.5
    # by drawing: outliers N(0, 1), informative N(d, 1)
    x = np.random.default_rng(0).standard_normal((2, 200_000))
    found = np.mean(x[0] + 1.3 > np.quantile(x[1], 0.9))
    assert abs(found - true_positives(0.1, 1.3)) < 5.0 * math.sqrt(0.25 / 200_000)


def test_command_line(tmp_path, capsys) -> None:
    assert main(["reproduce", "nope"]) == 2
    assert "'nope' is not permitted" in capsys.readouterr().err
    assert main(["reproduce", "page", "--out", str(tmp_path), "--page", str(tmp_path / "x.txt")]) == 2
    assert ".md" in capsys.readouterr().err
    code = main(["reproduce", "1", "--quick", "--json", "--workers", "1", "--out", str(tmp_path)])
    shown = json.loads(capsys.readouterr().out)
    assert code == 0
    assert [row["name"] for row in shown] == ["fig1"]
    assert (tmp_path / "fig1.png").exists()


def test_names() -> None:
    assert names(["7", "all"])[0] == "7"
    for wrong in ([], ["11"]):
        with pytest.raises(ParameterError):
            names(wrong)
