"""Matrix-free runs meet the exact theory where finite-size corrections are gone."""

import pytest

from outlearn import theory
from outlearn.model import Ensemble
from outlearn.simulation import Campaign, Task

ENSEMBLE = Ensemble(eta=0.0, gamma=10.0)


@pytest.mark.parametrize(("alpha", "n_features"), [(1.0, 10_000), (20.0, 2_000)])
def test_soft_selection_in_thousands_of_dimensions(alpha, n_features):
    task = Task(
        learner="soft", ensemble=ENSEMBLE, n_features=n_features, alpha=alpha, runs=8, draw="matrix-free"
    )
    stats = Campaign(task, seed=0).run()[task]
    assert stats.n_converged == 8
    exact = theory.solve(theory.SoftSelection(), ENSEMBLE, alpha)
    for summary, value in (
        (stats.R, exact.R),
        (stats.Q, exact.Q),
        (stats.z, exact.z),
        (stats.Phi, exact.angle),
        (stats.energy, exact.free_energy),
    ):
        assert abs(summary.mean - value) < 4 * summary.standard_error
    assert stats.Phi.standard_error < 0.01 * exact.angle
    if alpha == 1.0:  # the bounds are narrow enough to tell the printed equations from the exact ones
        printed = theory.solve(theory.SoftSelection(equations="printed"), ENSEMBLE, alpha)
        assert abs(stats.Phi.mean - printed.angle) > 10 * stats.Phi.standard_error


@pytest.mark.parametrize(("eta", "alpha"), [(0.0, 5.0), (2.0, 20.0)])
def test_message_passing_meets_the_bayes_bound(eta, alpha):
    ensemble = Ensemble(eta, 10.0)
    task = Task(
        learner="amp",
        ensemble=ensemble,
        n_features=2000,
        alpha=alpha,
        runs=6,
        draw="matrix-free",
        start="hebb",
    )
    stats = Campaign(task, seed=0).run()[task]
    bound = theory.solve(theory.BayesOptimal(), ensemble, alpha)
    for summary, value in ((stats.R, bound.R), (stats.Phi, bound.angle), (stats.energy, bound.free_energy)):
        assert abs(summary.mean - value) < 4 * summary.standard_error


def test_hebb_meets_its_closed_form():
    task = Task(learner="hebb", ensemble=ENSEMBLE, n_features=10_000, alpha=2.0, runs=8, draw="matrix-free")
    stats = Campaign(task, seed=0).run()[task]
    assert abs(stats.R.mean - 2.0 * 0.5 / 2.1) < 4 * stats.R.standard_error
    assert abs(stats.Q.mean - ((1.0 / 2.1) ** 2 + 0.2 / 2.1**2)) < 4 * stats.Q.standard_error
