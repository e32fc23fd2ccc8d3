"""The estimators find a transition that was put there, and extrapolate it to where it was put."""

import itertools

import numpy as np
import pytest
from scipy.special import expit, logit

from outlearn.exceptions import DataError, ParameterError
from outlearn.simulation import RunRecord, TaskStats, grid
from outlearn.simulation.scaling import finite_size_scaling

SIZES = (25, 50, 100, 400)
V_INFINITY, SLOPE = 0.02, 0.3


def two_state_runs(sizes=SIZES, runs=400, seed=0, sharpness=0.4, step=0.125):
    """R is near 0.9 or 0; the odds turn over at V = V_INFINITY + SLOPE/N, the sharper the larger N."""
    rng = np.random.default_rng(seed)
    pairs, etas = [], np.arange(1.0, 5.51, step)
    for task in grid(learner="soft", eta=etas, n_features=list(sizes), alpha=20, draw="dense"):
        n = task.n_features
        centre = -logit(V_INFINITY + SLOPE / n)
        lost = rng.random(runs) < expit((task.ensemble.eta - centre) * sharpness * n**0.5)
        R = np.where(lost, 0.0, 0.9) + 0.3 * rng.standard_normal(runs) / n**0.5
        records = [RunRecord(index=k, status="converged", R=r, Q=1.5 + r * r) for k, r in enumerate(R)]
        pairs.append((task, TaskStats.of(task.strong_id, records)))
    return pairs


def test_the_peak_of_the_variance_is_where_both_states_are_as_likely():
    scaling = finite_size_scaling(two_state_runs(), "variance", bootstrap=100)
    for onset in scaling.onsets:
        truth = -logit(V_INFINITY + SLOPE / onset.n_features)
        assert onset.low - 0.15 < truth < onset.high + 0.15
        assert onset.low <= onset.eta <= onset.high
        assert onset.resolved > 0.9
    assert scaling.low < -logit(V_INFINITY) < scaling.high
    assert scaling.high - scaling.low < 1.0
    assert scaling.slope == pytest.approx(SLOPE, rel=0.3)


def test_the_crossing_is_where_both_sizes_have_the_same_odds():
    scaling = finite_size_scaling(two_state_runs(), "binder", bootstrap=100)
    for onset, (small, large) in zip(scaling.onsets, itertools.pairwise(SIZES), strict=True):
        assert onset.n_features == pytest.approx((small * large) ** 0.5)
        steep = np.array([small, large]) ** 0.5
        centre = -logit(V_INFINITY + SLOPE / np.array([small, large]))
        same = (centre[1] * steep[1] - centre[0] * steep[0]) / (steep[1] - steep[0])
        assert onset.eta == pytest.approx(same, abs=0.2)
        assert onset.low - 0.1 < same < onset.high + 0.1
    assert scaling.eta == pytest.approx(-logit(V_INFINITY), abs=0.2)


def test_the_broadening_comes_before_the_transition():
    scaling = finite_size_scaling(two_state_runs(sharpness=0.8), "broadening", bootstrap=20)
    peak = finite_size_scaling(two_state_runs(sharpness=0.8), "variance", bootstrap=10)
    for first, later in zip(scaling.onsets, peak.onsets, strict=True):
        assert first.eta < later.eta


def test_the_broadening_of_one_peak_is_not_taken_for_the_transition():
    """However large N is: the width of R below the transition is N^(-1/2), but grows sixfold with η."""
    rng = np.random.default_rng(0)
    etas, pairs = np.arange(0.5, 4.51, 0.2), []
    for task in grid(learner="soft", eta=etas, n_features=[100, 10_000], alpha=20, draw="dense"):
        width = np.exp(0.6 * (task.ensemble.eta - 0.5)) * 0.1 / task.n_features**0.5
        lost = rng.random(200) < expit((task.ensemble.eta - 3.9) * task.n_features**0.5)
        R = np.where(lost, 0.0, 0.9) + width * rng.standard_normal(200)
        records = [RunRecord(index=k, status="converged", R=r, Q=1.0 + r * r) for k, r in enumerate(R)]
        pairs.append((task, TaskStats.of(task.strong_id, records)))
    small, large = finite_size_scaling(pairs, "broadening", bootstrap=0).onsets
    assert small.eta < large.eta
    assert 3.65 < large.eta < 4.0  # three times the quiet width is passed at 2.8


def test_the_law_that_holds_fits_best():
    runs = two_state_runs(runs=1600)
    misfits = [finite_size_scaling(runs, "variance", exponent=x, bootstrap=40).misfit for x in (1.0, 0.25)]
    assert misfits[0] < 5.0 < misfits[1]


def test_the_intervals_narrow_with_the_runs():
    few, many = (
        finite_size_scaling(two_state_runs(sizes=(25, 100), runs=runs), "variance", bootstrap=60)
        for runs in (100, 1600)
    )
    assert many.high - many.low < 0.6 * (few.high - few.low)


@pytest.mark.slow
def test_the_intervals_cover_the_truth():
    """95 % nominal: of 16 independent campaigns at most 2 may miss (which has probability 0.96)."""
    inside = 0
    for seed in range(16):
        runs = two_state_runs(runs=200, seed=seed, sharpness=0.3)
        scaling = finite_size_scaling(runs, "variance", bootstrap=40)
        inside += scaling.low < -logit(V_INFINITY) < scaling.high
    assert inside >= 14


def test_no_transition_is_no_number():
    quiet = [pair for pair in two_state_runs() if pair[0].ensemble.eta < 1.6]
    for estimator in ("variance", "broadening"):
        scaling = finite_size_scaling(quiet, estimator, bootstrap=20)
        assert np.isnan(scaling.onsets[-1].eta)
    assert np.isnan(finite_size_scaling(quiet, "broadening", bootstrap=0).eta)


def test_the_same_seed_gives_the_same_interval():
    runs = two_state_runs(sizes=(25, 50))
    one, two, three = (finite_size_scaling(runs, "variance", bootstrap=30, seed=s) for s in (1, 1, 2))
    assert repr(one) == repr(two)
    assert one.low != three.low


def test_the_table():
    scaling = finite_size_scaling(two_state_runs(), "variance", bootstrap=10)
    frame = scaling.to_frame()
    assert frame["n_features"].tolist() == [*map(float, SIZES), np.inf]
    assert frame["informative_fraction"].iloc[-1] == pytest.approx(expit(-scaling.eta))
    assert "N = inf" in repr(scaling)


def test_runs_that_do_not_belong_together():
    runs = two_state_runs(sizes=(25, 50), runs=5)
    other = grid(learner="hard", eta=1.0, n_features=25, alpha=20, draw="dense")[0]
    stats = TaskStats.of(other.strong_id, [])
    for wrong, message in [
        ([], "no runs"),
        ([*runs, (other, stats)], "differ in N and eta only"),
        ([pair for pair in runs if pair[0].n_features == 25], "2 sizes"),
        (runs[:2] + runs[-37:], "at 2 values"),
        ([(task, TaskStats(strong_id=task.strong_id)) for task, _ in runs], "fewer than two"),
    ]:
        with pytest.raises(DataError, match=message):
            finite_size_scaling(wrong, "variance")
    with pytest.raises(DataError, match="3 sizes"):
        finite_size_scaling(runs, "binder")
    for name, value in (("estimator", "eye"), ("exponent", 0.0)):
        with pytest.raises(ParameterError, match=name):
            finite_size_scaling(runs, **{name: value})
