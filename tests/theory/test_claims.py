import csv
import math
from importlib import resources

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import ndtr
from scipy.stats import norm

from outlearn.exceptions import ParameterError
from outlearn.model import Ensemble, hard_energy
from outlearn.theory.claims import (
    Claim,
    claims,
    critical_eta,
    critical_eta_condition,
    critical_gamma,
    hard_onset,
)
from outlearn.theory.hard import HardSelection, expected_gain
from outlearn.theory.solve import solve
from outlearn.theory.system import Points


def printed_equation(eta, gamma):
    """Eq. etacinf, letter by letter."""
    braces = (
        math.exp(math.sqrt(2 * gamma * eta))
        + math.exp(gamma / 2 + eta)
        + math.sqrt(math.pi * eta)
        * math.exp(gamma / 2 + eta)
        * (
            -2 * ndtr(math.sqrt(gamma) - math.sqrt(2 * eta))
            - 2 * math.exp(eta)
            + 2 * math.exp(eta) * ndtr(math.sqrt(2 * eta))
        )
    )
    square = ndtr(math.sqrt(gamma) - math.sqrt(2 * eta)) ** 2
    return eta - 2 * gamma * math.pi * eta * math.exp(gamma + 2 * eta) * square / braces**2


@pytest.mark.parametrize("gamma", [0.3, 0.5, 1.0, 2.0, 5.0])
def test_figure_7_solves_the_printed_equation(gamma):
    eta = critical_eta(gamma, "printed")
    assert printed_equation(eta, gamma) == pytest.approx(0.0, abs=1e-7 * eta)
    assert printed_equation(1.01 * eta, gamma) * printed_equation(0.99 * eta, gamma) < 0


@pytest.mark.parametrize("gamma", [0.3, 1.0, 5.0])
def test_its_roots_have_an_overlap_of_the_wrong_sign(gamma):
    eta = critical_eta(gamma, "printed")
    R = math.sqrt(2 * eta / gamma)  # f = 0
    e = Ensemble(eta, gamma)
    t = (gamma * R * R / 2 + eta - gamma * R * np.array([0.0, 1.0])) / (math.sqrt(gamma) * R)
    p = np.array([e.outlier_fraction, e.informative_fraction])
    Q0, z0 = p @ ndtr(-t), p @ norm.pdf(t) / (math.sqrt(gamma) * R)
    R0 = p[1] * ndtr(-t[1])
    assert Q0 - z0 < 0
    assert R0 / (Q0 - z0) == pytest.approx(-R, rel=1e-6)  # the square hides this sign
    b = critical_eta_condition(eta, gamma) + math.sqrt(2 * math.pi * gamma) * ndtr(-t[1])
    assert b == pytest.approx(-math.sqrt(2 * math.pi) * math.sqrt(2 * eta) * (Q0 - z0) / p[1], rel=1e-9)


@pytest.mark.parametrize("gamma", [0.05, 0.2, 0.5, 1.0, 10.0])
def test_the_unsquared_condition_has_no_root_with_the_right_sign(gamma):
    values = [critical_eta_condition(eta, gamma, squared_root=-1) for eta in np.geomspace(1e-4, 60, 400)]
    assert min(values) > 0


@pytest.mark.parametrize("gamma", [0.1, 0.2, 1.0, 10.0])
@pytest.mark.parametrize("eta", [0.1, 0.8, 3.0, 8.0])
def test_hard_selection_gains_at_every_finite_eta(gamma, eta):
    assert critical_eta(gamma) == math.inf
    limit = HardSelection().limit(Ensemble(eta, gamma))
    assert limit.R_inf > 0
    assert limit.energy < 0
    assert expected_gain(Ensemble(eta, gamma), limit.R_inf) == pytest.approx(-limit.energy)


def test_threshold_is_where_the_two_roots_merge():
    gamma, eta = critical_gamma()
    assert 0.278 < gamma < 0.279
    assert critical_eta(gamma - 1e-4, "printed") == 0.0
    assert critical_eta(gamma + 1e-4, "printed") == pytest.approx(eta, abs=0.05)
    assert abs(critical_eta_condition(eta, gamma)) < 1e-9


@pytest.mark.parametrize(("gamma", "gamma_tilde"), [(10.0, 10.0), (2.0, 5.0), (4.0, 1.0)])
@pytest.mark.parametrize("equations", ["exact", "printed"])
def test_onset_is_where_vanishing_order_parameters_select_nothing(gamma, gamma_tilde, equations):
    """For R, Q -> 0 an example is kept iff -η - κ + rate·b > 0 with κ = γ̃/2 and b -> γ̃²/γ."""
    system, e = HardSelection(equations).system(), Ensemble(0.0, gamma, gamma_tilde)
    onset = hard_onset(gamma, gamma_tilde, equations)

    def chosen(eta):
        points = Points.of(e.replace(eta=5.0, eta_tilde=eta), 5.0)
        out = system.explicit(points)
        return any(bool(x.exists[0]) for x in out)

    assert chosen(onset + 1e-3)
    assert not chosen(onset - 1e-3)


def test_runs_decide_between_q_hat_and_half_of_it():
    rows = [r for r in _record() if r["claim"] == "hard-moment"]
    exact, printed = (
        solve(HardSelection(kind), Ensemble(1.0, 10.0), 20.0).Q for kind in ("exact", "printed")
    )
    assert rows
    informed = next(r for r in rows if "from B" in r["what"])
    mean, error = float(informed["mean"]), float(informed["error"])
    assert abs(mean - exact) < 3 * error
    assert abs(mean - printed) > 3 * error


def test_energy_of_hard_selection_needs_no_two_pi():
    """-ln ∫ dJ P(D, J, V) by quadrature in one dimension."""
    e, x, v = Ensemble(0.7, 3.0), np.array([0.4, -1.1, 0.9]), np.array([1.0, 0.0, 1.0])

    def joint(j):
        p = math.exp(-0.5 * j * j) / math.sqrt(2 * math.pi)
        for xi, vi in zip(x, v, strict=True):
            p *= 0.5 * math.sqrt(3.0 / (2 * math.pi)) * math.exp(-1.5 * (xi - vi * j) ** 2)
            p *= e.informative_fraction if vi else e.outlier_fraction
        return p

    exact = -math.log(quad(joint, -12, 12, epsabs=0, epsrel=1e-12)[0])
    found = hard_energy(v, x[:, None], np.ones(3), e)
    assert found == pytest.approx(exact, abs=1e-10)
    assert abs(found + 0.5 * math.log(2 * math.pi) - exact) > 0.9  # what the printed C would give


def _record():
    text = resources.files("outlearn.theory").joinpath("claims_measured.csv").read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def test_table_is_whole_and_its_numbers_are_those_of_the_engine():
    table = claims()
    assert len({c.key for c in table}) == len(table)
    assert {r["claim"] for r in _record()} <= {c.key for c in table}
    assert all(isinstance(c, Claim) and all(c.to_dict().values()) for c in table)
    frame = table.to_frame()
    hard = solve(HardSelection(), Ensemble(1.0, 10.0), 20.0)
    assert f"Q = {hard.Q:.4f}" in frame.loc["hard-moment", "exact"]
    assert "1.0000000000 (η = 4)" in frame.loc["r-infinity", "exact"]
    assert "not run" not in frame.loc["threshold", "measured"]
    assert "=>" in repr(table)
    assert table._repr_html_().count("<tr>") == len(table) + 1


def test_measured_overlaps_reject_the_printed_expansion():
    rows = {r["quantity"]: r for r in _record() if r["claim"] == "soft-order-parameters"}
    mean, error = float(rows["Q"]["mean"]), float(rows["Q"]["error"])
    assert abs(mean - 0.77260) < 3 * error
    assert abs(mean - 0.78571) > 3 * error


def test_hard_selection_learns_below_the_threshold():
    row = next(r for r in _record() if r["claim"] == "threshold")
    assert float(row["mean"]) + 3 * float(row["error"]) < 0.1  # 1/2 if the claim were right


@pytest.mark.parametrize("gamma", [0.0, -1.0, math.inf, math.nan])
def test_bad_gamma_is_named(gamma):
    with pytest.raises(ParameterError, match="gamma"):
        critical_eta(gamma)
    with pytest.raises(ParameterError, match="equations"):
        critical_eta(1.0, "corrected")


def test_condition_meets_scipy():
    eta = brentq(critical_eta_condition, 3.0, 6.0, args=(1.0,))
    assert eta == pytest.approx(critical_eta(1.0, "printed"), rel=1e-10)
