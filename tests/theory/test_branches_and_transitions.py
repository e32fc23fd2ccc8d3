"""Completeness of branches; folds, transitions, diagrams."""

import math

import numpy as np
import pytest

from outlearn import theory
from outlearn.model import Ensemble
from outlearn.numerics import Status
from outlearn.theory.search import polish, search
from outlearn.theory.system import Points

SOFT, HARD = theory.SoftSelection(), theory.HardSelection()
E = Ensemble(eta=0.0, gamma=10.0)

# alpha, eta, gamma: one, three and five solutions, all three transitions, small and large gamma
SETS = [
    (20, 2.0, 10), (20, 3.78, 10), (20, 3.9, 10), (20, 3.98, 10), (20, 5.0, 10), (20, 6.0, 10), (20, 9.0, 10),
    (20, 10.0, 10), (2, 5.4, 10), (2, 8.2, 10), (200, 5.0, 10), (200, 6.6, 10), (1, 0.0, 10), (5, 3.3, 10),
    (0.2, 3.0, 10), (50, 1.0, 0.3), (10, 4.0, 100), (1, 12.0, 50), (7, -2.0, 3), (100, 4.3, 10),
]  # fmt: skip


def dense_scan(system, points: Points, size: int) -> np.ndarray:
    """Solutions that Newton finds from a dense grid of all unknowns, not from the engine's starts."""
    cosine = np.concatenate([np.geomspace(1e-5, 0.2, size), 1 - np.geomspace(0.7, 1e-3, size)])
    Q = np.geomspace(1e-9, 2.0, 2 * size)
    z = np.geomspace(1e-3, 1.3, size)
    grids = [cosine, Q, z]
    if len(system.names) == 4:
        grids.append(float(points.alpha[0]) * np.geomspace(1e-4, 0.9, size))
    mesh = np.stack([x.ravel() for x in np.meshgrid(*grids, indexing="ij")], axis=1)
    v = np.log(
        np.column_stack([mesh[:, 0] * np.sqrt(mesh[:, 1]), mesh[:, 1] * (1 - mesh[:, 0] ** 2), mesh[:, 2:]])
    )
    owner = np.zeros(len(v), dtype=np.int64)
    x, _residual, status = polish(system, points, v, owner)
    good = np.array([s is Status.CONVERGED for s in status]) & (x > system.lowest).all(axis=1)
    return x[good]


def missed(learner, alpha: float, eta: float, gamma: float, size: int) -> int:
    """How many solutions the scan has that the search has not."""
    points = Points.of(Ensemble(eta, gamma), alpha)
    found = search(learner.system(), points)
    assert found.complete[0]
    scanned = dense_scan(learner.system(), points, size)
    far = [np.abs(found.v - x).max(axis=1).min(initial=np.inf) > 1e-5 for x in scanned]
    return int(np.sum(far))


@pytest.mark.parametrize(("alpha", "eta", "gamma"), SETS)
@pytest.mark.parametrize("learner", [SOFT, HARD], ids=["soft", "hard"])
def test_a_dense_scan_finds_nothing_that_was_missed(learner, alpha, eta, gamma):
    assert missed(learner, alpha, eta, gamma, size=3) == 0


@pytest.mark.slow
@pytest.mark.parametrize("learner", [SOFT, HARD], ids=["soft", "hard"])
def test_a_denser_scan_at_random_parameters_finds_nothing_that_was_missed(learner):
    rng = np.random.default_rng(11)
    for _ in range(60):
        alpha, eta, gamma = 10 ** rng.uniform(-1, 2.5), rng.uniform(-2, 10), 10 ** rng.uniform(-0.5, 1.7)
        assert missed(learner, alpha, eta, gamma, size=6) == 0, (alpha, eta, gamma)


def test_branches_has_everything_and_names_it():
    found = theory.branches(SOFT, Ensemble(3.9, 10.0), 20)
    assert found.complete
    assert [s.branch for s in found] == ["informative", "uninformative", "unstable"]
    assert all(s.status.ok for s in found)
    energies = [s.free_energy for s in found]
    assert energies == sorted(energies)
    hard = theory.branches(HARD, Ensemble(3.6, 10.0), 20)
    assert sorted(s.branch for s in hard) == [
        "informative",
        "intermediate",
        "trivial",
        "unstable",
        "unstable",
    ]
    assert len(found.to_frame()) == 3


def test_the_three_named_branches():
    e = Ensemble(3.95, 10.0)
    informative, uninformative, equilibrium = (
        theory.solve(SOFT, e, 20, branch=b) for b in ("informative", "uninformative", "equilibrium")
    )
    assert informative.R > 0.6
    assert uninformative.R < 0.1
    assert equilibrium.free_energy == min(informative.free_energy, uninformative.free_energy)
    assert equilibrium == uninformative
    assert theory.solve(HARD, Ensemble(5.0, 10.0), 20, branch="uninformative").branch == "trivial"


def test_follow_passes_both_folds_and_ends_where_it_was_told():
    path = theory.follow(SOFT, Ensemble(4.0, 10.0), alpha=20, over="eta", start=5.0, stop=2.0)
    assert path.status is Status.CONVERGED
    assert path.fold_values == pytest.approx([3.7691310, 3.9922057], abs=1e-6)
    assert path.values[0] == 5.0
    assert path.values[-1] == 2.0
    assert all(p.residual < 1e-10 for p in path.points)
    assert {p.branch for p in path.points} == {"", "unstable"}
    direct = theory.solve(SOFT, Ensemble(2.0, 10.0), 20)
    assert pytest.approx(direct.R, rel=1e-9) == path.points[-1].R
    assert len(path.to_frame()) == len(path)
    assert path.to_dict()["points"][0] == path.points[0].to_dict()


def test_follow_over_alpha_and_gamma():
    path = theory.follow(SOFT, Ensemble(4.0, 10.0), alpha=20, over="alpha", start=10.0, stop=60.0)
    assert path.values[-1] == pytest.approx(60.0)
    assert path.fold_values == pytest.approx([34.67668, 20.2444], abs=1e-3)
    gamma = theory.follow(SOFT, Ensemble(1.0, 10.0), alpha=5, over="gamma", start=10.0, stop=1.0)
    assert gamma.points[-1].ensemble.gamma == pytest.approx(1.0)
    assert gamma.points[-1].ensemble.gamma_tilde == gamma.points[-1].ensemble.gamma


def test_a_spinodal_is_where_two_solutions_merge():
    (t, _) = theory.transitions(SOFT, E, 20, over="eta", between=(0, 12))
    for spinodal, outward in ((t.lower_spinodal, -1), (t.upper_spinodal, 1)):
        inside = theory.branches(SOFT, Ensemble(spinodal - outward * 1e-4, 10.0), 20, thorough=False)
        outside = theory.branches(SOFT, Ensemble(spinodal + outward * 1e-4, 10.0), 20, thorough=False)
        assert (len(inside), len(outside)) == (3, 1)
    assert max(t.lower_spinodal_error, t.upper_spinodal_error) < 1e-10
    assert t.spinodal_residual < 1e-10


def test_the_two_transitions_of_soft_selection():
    first, second = theory.transitions(SOFT, E, 20, over="eta", between=(0, 12))
    assert first.status is Status.CONVERGED
    assert first.value == pytest.approx(3.9205828691, abs=1e-8)
    assert first.energy_gap < 1e-11
    assert first.error < 1e-10
    assert first.below.R > 0.6 > 0.1 > first.above.R
    assert first.below.free_energy == pytest.approx(first.above.free_energy, abs=1e-10)
    # from the glass to the collapsed solution, which exists from below eta = 6 upward
    assert second.value == pytest.approx(9.55847, abs=1e-4)
    assert second.lower_spinodal < 6 < second.value < second.upper_spinodal
    assert second.above.Q < 1e-6
    # just beside it, the equilibrium is on either side
    below, above = (theory.solve(SOFT, Ensemble(first.value + s, 10.0), 20) for s in (-1e-6, 1e-6))
    assert below.R > 0.6 > 0.1 > above.R


def test_transition_over_alpha_is_the_same_point():
    (over_eta, _) = theory.transitions(SOFT, E, 20, over="eta", between=(0, 12))
    e = Ensemble(over_eta.value, 10.0)
    over_alpha = theory.transitions(SOFT, e, over="alpha", between=(5.0, 100.0))
    assert any(t.value == pytest.approx(20.0, rel=1e-8) for t in over_alpha)


def test_hard_selection_ends_in_the_trivial_solution():
    first, second = theory.transitions(HARD, E, 20, over="eta", between=(-1, 10))
    assert second.above.branch == "trivial"
    assert second.below.free_energy == pytest.approx(0.0, abs=1e-10)
    assert second.lower_spinodal == pytest.approx(0.0, abs=1e-10)  # the onset, zero when matched
    assert first.value < second.value
    (printed,) = theory.transitions(theory.HardSelection("printed"), E, 20, over="eta", between=(-4, 10))
    assert printed.lower_spinodal == pytest.approx(-2.5, abs=1e-10)  # the printed onset


def test_a_branch_found_inside_the_interval_keeps_its_spinodal():
    e = Ensemble(4.0, 10.0)
    (t,) = theory.transitions(HARD, e, 20, over="alpha", between=(5, 50))
    assert t.status is Status.CONVERGED
    assert t.above.R > 0.7 > 0.1 > t.below.R
    for alpha, count in ((t.lower_spinodal * 0.9999, 3), (t.lower_spinodal * 1.0001, 5)):
        assert len(theory.branches(HARD, e, alpha)) == count


def test_an_interval_that_begins_without_any_solution():
    first, second = theory.transitions(HARD, Ensemble(4.0, 10.0), 20, over="gamma", between=(2, 20))
    assert first.below.branch == "trivial"
    assert (first.value, second.value) == pytest.approx((4.285055, 11.805103), abs=1e-5)
    printed = theory.SoftSelection("printed")
    assert theory.transitions(printed, Ensemble(4.0, 10.0), 20, over="alpha", between=(5, 50)) == ()
    (only,) = theory.transitions(printed, Ensemble(4.0, 10.0), 20, over="gamma", between=(2, 20))
    assert only.value == pytest.approx(2.600230, abs=1e-5)


def test_transitions_over_the_belief_alone():
    e = Ensemble(4.0, 10.0)
    first, second = theory.transitions(SOFT, e, 20, over="gamma_tilde", between=(2, 40))
    assert (first.status, second.status) == (Status.CONVERGED, Status.CONVERGED)
    assert (first.value, second.value) == pytest.approx((7.148174978, 7.409434221), rel=1e-8)
    for t in (first, second):  # two transitions closer than the curve's own points
        below, above = (
            theory.branches(SOFT, Ensemble(4.0, 10.0, t.value * x), 20)[0].R for x in (1 - 1e-6, 1 + 1e-6)
        )
        assert (below, above) == pytest.approx((t.below.R, t.above.R), rel=1e-3)
    path = theory.follow(SOFT, e, 20, over="eta_tilde", start=0.0, stop=8.0)
    assert path.points[-1].ensemble == Ensemble(4.0, 10.0, eta_tilde=8.0)
    assert len(path.fold_values) == 2


def test_what_no_damped_iteration_reaches_is_called_unstable_for_every_learner():
    cold, printed = theory.Gibbs(3.0), theory.SoftSelection("printed")
    assert [s.branch for s in theory.branches(cold, Ensemble(4.0, 10.0), 20)] == [
        "informative",
        "uninformative",
        "unstable",
    ]
    assert [s.branch for s in theory.branches(printed, E, 1)] == ["informative", "unstable"]
    assert pytest.approx(0.79204, abs=1e-5) == theory.solve(printed, E, 1, branch="uninformative").R


# where solve once gave another branch than that of lowest free energy: noise selects itself, the length is
# large at small gamma, the learner is far from matched, the expected loss has two minima
@pytest.mark.parametrize(
    ("learner", "ensemble", "alpha", "energy"),
    [
        (SOFT, Ensemble(5.348092251, 52.752491494, 119.71684708, 4.2319689064), 34.60126, -9.7673),
        (SOFT, Ensemble(10.7222683449, 249.84552895, 426.31171183, 12.043964073), 617.913528, -3.92412),
        (HARD, Ensemble(2.574320979045157, 0.060529190195287234), 15272.104904, -130.50009),
        (HARD, Ensemble(8.03219613536, 0.06437569624, 0.16449564979, 9.5136639005), 58486.2478, -449.0568),
        (theory.HardSelection("printed"), Ensemble(5.961207421554619, 3.106132264), 28018.66863, -11.0765),
        (SOFT, Ensemble(8.3, 48.0, 72.0, 7.5), 1e4, -72.70822),
        (theory.Gibbs(2.0), Ensemble(8.3, 48.0, 72.0, 7.5), 1e5, -714.86588),
    ],
)  # fmt: skip
def test_the_equilibrium_is_not_overlooked(learner, ensemble, alpha, energy):
    s = theory.solve(learner, ensemble, alpha)
    assert s.status is Status.CONVERGED
    assert s.free_energy == pytest.approx(energy, rel=1e-5)
    assert s.free_energy == pytest.approx(theory.branches(learner, ensemble, alpha)[0].free_energy, rel=1e-9)


def test_what_newton_does_not_reach_at_once_is_solved_all_the_same():
    svm = theory.EmpiricalRisk(theory.Hinge(), 1.0)
    far = Ensemble(-2.558278346648912, 849.1581739125635)
    near_floor = Ensemble(-4.1067004224158, 1403.831605980284)
    for e, alpha in ((far, 21672.28), (near_floor, 1688868.2)):
        assert theory.solve(svm, e, alpha).residual < 1e-10


@pytest.mark.parametrize("learner", [SOFT, HARD, theory.BayesOptimal(), theory.Gibbs()], ids=repr)
def test_branches_without_any_outlier_are_the_one_of_hebb(learner):
    (only,) = theory.branches(learner, Ensemble(-math.inf, 10.0), 2.0)
    assert pytest.approx(20 / 21, rel=1e-12) == only.R


def test_the_solution_that_parts_the_trivial_branch_from_the_others():
    e = Ensemble(3.0084288828222, 555.59604809522)
    found = theory.branches(HARD, e, 8633.181, thorough=False)
    assert found.complete
    assert [s.branch for s in found] == ["informative", "trivial", "unstable"]


def test_no_transition_is_an_empty_answer():
    assert theory.transitions(theory.Hebb(), E, 20, over="eta", between=(0, 12)) == ()
    assert theory.transitions(SOFT, E, 20, over="eta", between=(0, 2)) == ()


def test_phase_diagram_agrees_with_single_solves():
    alphas, etas = np.array([3.0, 20.0]), np.array([1.0, 3.9, 6.0, 9.0, 11.0])
    for learner in (SOFT, HARD):
        diagram = theory.phase_diagram(learner, gamma=10, alphas=alphas, etas=etas)
        assert all(s is Status.CONVERGED for s in diagram.status.flat)
        for i, alpha in enumerate(alphas):
            for j, eta in enumerate(etas):
                every = theory.branches(learner, Ensemble(eta, 10.0), alpha, thorough=False)
                assert diagram.n_branches[i, j] == len(every)
                k = diagram.equilibrium[i, j]
                lowest = next(s for s in every if s.branch != "unstable")
                assert diagram.R[i, j, k] == pytest.approx(lowest.R, rel=1e-8)
                assert diagram.free_energy[i, j, k] == pytest.approx(lowest.free_energy, rel=1e-8)
        line = diagram.line("first order", 0)
        assert line is not None
        assert line.error.max() < 1e-10
        table = diagram.to_frame()
        assert len(table) == diagram.n_branches.sum()
        assert len(diagram.to_dict()["points"]) == len(table)
        assert table.equilibrium.sum() == alphas.size * etas.size
        assert not table.drop(columns="at_eigenvalue").isna().any().any()


def test_a_line_keeps_its_number_on_a_coarse_grid():
    diagram = theory.phase_diagram(
        theory.BayesOptimal(), gamma=40, alphas=[3, 8, 30, 120, 600], etas=np.linspace(0, 10, 11)
    )
    assert {line.of for line in diagram.lines} == {0}
    assert len(diagram.line("first order").alpha) == 5


def test_stability_line_is_where_the_number_is_one():
    diagram = theory.phase_diagram(SOFT, gamma=10, alphas=[5.0, 10.0], etas=np.linspace(0, 5, 11))
    line = diagram.line("stability")
    assert line is not None
    for alpha, eta in zip(line.alpha, line.eta, strict=True):
        s = theory.solve(SOFT, Ensemble(eta, 10.0), alpha)
        assert s.at_eigenvalue == pytest.approx(1.0, abs=1e-6)


def test_learning_curve_keeps_its_branch_and_its_failures():
    curve = theory.learning_curve(SOFT, Ensemble(4.0, 10.0), [5.0, 25.0, 60.0], branch="uninformative")
    assert [s.alpha for s in curve] == [5.0, 25.0, 60.0]
    assert curve[1].R < 0.1
    failing = theory.learning_curve(theory.SoftSelection("printed"), Ensemble(6.0, 10.0), [1.0, 20.0])
    assert len(failing) == 2
    assert not any(math.isnan(s.residual) for s in failing)


def test_a_branch_that_closes_on_itself_wins_between_two_transitions():
    e = Ensemble(eta=3.8471558137, gamma=20.9385067544, gamma_tilde=10.9013723646)
    found = theory.transitions(SOFT, e, over="alpha", between=(0.5, 10.0))
    assert [t.value for t in found] == pytest.approx([0.8760743, 1.7026745, 3.6351519], abs=1e-6)
    assert all(t.status is Status.CONVERGED for t in found)
    begins, ends = found[0].lower_spinodal, found[1].upper_spinodal
    assert begins is None or begins < 0.5
    assert ends == pytest.approx(3.827344, abs=1e-5)
    path = theory.follow(SOFT, e, over="alpha", start=1.2, stop=60.0)
    assert path.status is Status.CONVERGED
    assert len(path) < 200
