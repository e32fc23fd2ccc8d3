"""The benchmark on real data: spoils what it says, keeps what it found, ranks rightly."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from benchmarks.real import contamination, sets, tables
from benchmarks.real.cells import Cell, Outcome, Store, outcomes, run_cell
from benchmarks.real.methods import RIVALS, fingerprint
from benchmarks.real.rivals import _span


@pytest.fixture(scope="module")
def digits():
    return sets.load("digits_3v8")


def test_nothing_is_changed_by_no_contamination(digits):
    task = contamination.spoil(digits, "none", 0.0, seed=3)
    assert not task.garbage.any()
    known = {row.tobytes() for row in digits.X}
    assert all(row.tobytes() in known for row in task.X)
    assert len(task.X) + len(task.X_test) == len(digits.X)


@pytest.mark.parametrize("kind", ["blob", "flips", "foreign"])
@pytest.mark.parametrize("rate", [0.2, 0.8])
def test_the_spoiled_share_is_what_was_asked_for(digits, kind, rate):
    clean = contamination.spoil(digits, "none", 0.0, seed=1)
    task = contamination.spoil(digits, kind, rate, seed=1)
    np.testing.assert_array_equal(task.X_test, clean.X_test)
    np.testing.assert_array_equal(task.y[~task.garbage], clean.y[~task.garbage])
    moved = (task.X != clean.X).any(axis=1)
    if kind == "flips":
        assert not moved.any()
        np.testing.assert_array_equal(task.garbage, task.y != clean.y)
        assert abs(task.garbage.mean() - rate / 2) < 0.1
    else:
        np.testing.assert_array_equal(moved, task.garbage)
        assert task.garbage.sum() == round(rate * len(task.y))
    if kind == "foreign":
        foreign = {row.tobytes() for row in digits.foreign}
        assert all(row.tobytes() in foreign for row in task.X[task.garbage])


def test_tasks_are_reproducible_and_seeds_differ(digits):
    first, again, other = (contamination.spoil(digits, "blob", 0.5, seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.X, again.X)
    np.testing.assert_array_equal(first.y, again.y)
    assert first.X.shape == other.X.shape
    assert (first.X != other.X).any()


def test_the_blob_knows_no_class_and_has_the_classes_spread():
    data = sets.load("breast_cancer")
    task = contamination.spoil(data, "blob", 0.8, seed=0)
    clean = contamination.spoil(data, "none", 0.0, seed=0)
    blob = task.X[task.garbage]
    spread = np.sqrt(np.mean([clean.X[clean.y == k].var(axis=0) for k in (0, 1)], axis=0))
    off_center = np.abs(blob.mean(axis=0) - clean.X.mean(axis=0)) / spread
    assert off_center.max() < 5 / np.sqrt(len(blob))
    assert 0.6 < np.median(blob.std(axis=0) / spread) < 1.4
    labels = task.y[task.garbage].mean()
    assert abs(labels - 0.5) < 0.15


def test_impossible_cells_are_not_run(digits):
    wine = sets.load("wine_0v1")
    assert contamination.possible(digits, "foreign", 0.8)
    assert not contamination.possible(wine, "foreign", 0.8)
    assert not contamination.possible(sets.load("breast_cancer"), "foreign", 0.2)
    assert contamination.possible(wine, "none", 0.0)
    assert not contamination.possible(wine, "none", 0.2)
    assert not contamination.possible(wine, "blob", 0.0)


def test_rules_in_the_span_of_the_data_are_the_same_rules():
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(0)
    X, T, y = rng.normal(size=(12, 40)), rng.normal(size=(9, 40)), np.arange(12) % 2
    basis = _span(X)
    assert basis.shape == (40, 12)
    direct = LogisticRegression(tol=1e-10).fit(X, y).decision_function(T)
    inside = LogisticRegression(tol=1e-10).fit(X @ basis, y).decision_function(T @ basis)
    np.testing.assert_allclose(inside, direct, atol=1e-6)


def test_results_are_kept_and_a_cut_line_costs_one_cell(tmp_path):
    cells = [Cell(set="wine_0v1", kind="flips", rate=0.2, seed=s, method="centroid") for s in (0, 1)]
    path = tmp_path / "outcomes.jsonl"
    first = list(outcomes(cells, Store(path), jobs=1))
    assert all(0.5 < o.accuracy <= 1.0 and o.failure == "" for o in first)
    path.write_text(path.read_text()[:-20])
    store = Store(path)
    code = fingerprint("centroid")
    assert store.get(cells[0], code) == first[0]
    assert store.get(cells[1], code) is None
    assert store.get(cells[0], "other code") is None
    assert store.newest(cells[0]) == first[0]
    assert store.newest(cells[1]) is None
    again = list(outcomes(cells, store, jobs=1))
    assert {o.cell: o.accuracy for o in again} == {o.cell: o.accuracy for o in first}


def test_a_failure_is_an_outcome(monkeypatch):
    def broken(X, y, seed):
        raise ValueError("no")

    monkeypatch.setitem(RIVALS, "centroid", broken)
    outcome = run_cell(Cell(set="wine_0v1", kind="none", rate=0.0, seed=0, method="centroid"), "x")
    assert outcome.accuracy is None
    assert outcome.failure == "ValueError: no"


@pytest.fixture
def results():
    def outcome(set_, rate, method, accuracy, failure=""):
        cell = Cell(set=set_, kind="flips" if rate else "none", rate=rate, seed=0, method=method)
        return Outcome(
            cell=cell,
            fingerprint="x",
            accuracy=accuracy,
            balanced_accuracy=accuracy,
            garbage_auc=accuracy if rate else None,
            seconds=1.0,
            failure=failure,
        )

    return tables.frame(
        [
            outcome("twonorm", 0.0, "soft", 0.90),
            outcome("twonorm", 0.0, "LDA", 0.95),
            outcome("twonorm", 0.0, "SVM", 0.80),
            outcome("twonorm", 0.5, "soft", 0.90),
            outcome("twonorm", 0.5, "LDA", None, "ValueError: no"),
            outcome("twonorm", 0.5, "SVM", 0.90),
        ]
    )


def test_ranks_share_ties_and_put_failures_last(results):
    ranks = tables.mean_ranks(tables.means(results, "accuracy"))
    assert ranks.loc["rate 0"].to_dict() == {"soft": 2, "LDA": 1, "SVM": 3}
    assert ranks.loc["rate 0.5"].to_dict() == {"soft": 1.5, "LDA": 3, "SVM": 1.5}
    assert ranks.loc["all"].to_dict() == {"soft": 1.75, "LDA": 2, "SVM": 2.25}


def test_points_behind_the_best_rival(results):
    behind = tables.behind_at_zero(tables.means(results, "accuracy"))
    assert behind.loc["twonorm", "soft"] == pytest.approx(5.0)


def test_the_page_keeps_its_words_and_gets_the_tables(results, tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"before\n{tables.BEGIN}\nold\n{tables.END}\nafter\n")
    tables.write(results, str(page))
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "old" not in text
    assert "| twonorm | none | 0 | 90.0 | **95.0** | 80.0 |" in text
    assert "twonorm, none at 0: 5.0 points behind LDA" in text
    assert "LDA: 1 of 2 cells; ValueError: no" in text


def test_a_failed_cell_has_no_mean(results):
    table = tables.means(results, "accuracy")
    assert isinstance(table, pd.DataFrame)
    assert np.isnan(table.loc[("twonorm", "flips", 0.5), "LDA"])
