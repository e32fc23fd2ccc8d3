"""The claims of the paper, each against its printed equations, the exact ones and finite-size runs.

The printed and exact columns are computed when asked for. The measured column is read from
``claims_measured.csv``, which ``docs/theory/make_claims.py`` writes from runs of ``outlearn.inference``;
the theory never runs an algorithm.
"""

from __future__ import annotations

import csv
import html
import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy.optimize import brentq, minimize_scalar
from scipy.special import log_ndtr, ndtr

from outlearn.model import Ensemble
from outlearn.model.checks import choice, positive
from outlearn.theory.bayes import BayesOptimal
from outlearn.theory.hard import HardSelection
from outlearn.theory.hebb import Hebb
from outlearn.theory.soft import SoftSelection
from outlearn.theory.solve import branches, solve
from outlearn.theory.transitions import transitions

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "Claim",
    "Claims",
    "claims",
    "critical_eta",
    "critical_eta_condition",
    "critical_gamma",
    "hard_onset",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One claim: where the paper makes it, what three sources give, and what is left of it."""

    key: str
    place: str
    claim: str
    printed: str
    exact: str
    measured: str
    verdict: str

    def to_dict(self) -> dict[str, str]:
        """Return the columns of the table."""
        return {f.name: getattr(self, f.name) for f in fields(self)}


class Claims(tuple[Claim, ...]):
    """The table of claims."""

    def to_frame(self) -> pd.DataFrame:
        """Return one row per claim."""
        import pandas as pd

        return pd.DataFrame([c.to_dict() for c in self]).set_index("key")

    def __repr__(self) -> str:
        return "\n".join(
            f"{c.place}: {c.claim}\n  printed: {c.printed}\n  exact: {c.exact}\n"
            f"  runs: {c.measured}\n  => {c.verdict}"
            for c in self
        )

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{f.name}</th>" for f in fields(Claim))
        rows = "".join(
            "<tr>" + "".join(f"<td>{html.escape(x)}</td>" for x in c.to_dict().values()) + "</tr>"
            for c in self
        )
        return f"<table><tr>{head}</tr>{rows}</table>"


def critical_eta_condition(eta: float, gamma: float, *, squared_root: int = 1) -> float:
    """Left side of Eq. etacinf before it is squared: B(η) - squared_root √(2πγ) Φ_N(√γ - √(2η)).

    B = -√(2π)√(2η) (Q_0 - z_0)/p₁ in the scaling of appendix B. R = p₁H_1/(Q_0 - z_0) > 0 needs B < 0, that
    is ``squared_root=-1``; the curve of figure 7 consists of zeros of ``squared_root=+1``
    (docs/theory/errata.md).
    """
    s = math.sqrt(2.0 * eta)
    informative = float(ndtr(math.sqrt(gamma) - s))
    b = 1.0 + math.exp(s * math.sqrt(gamma) - 0.5 * gamma - eta)
    # e^η Φ_N(-s) without overflow: both factors in one exponent
    b -= 2.0 * math.sqrt(math.pi * eta) * (informative + math.exp(eta + float(log_ndtr(-s))))
    return b - squared_root * math.sqrt(2.0 * math.pi * gamma) * informative


def critical_eta(gamma: float, equations: str = "exact") -> float:
    """Critical η of hard selection at α = infinity (figure 7, Eq. etacinf).

    "printed" is the largest root of Eq. etacinf, 0 below γ = 0.278 where it has none. "exact" is infinite
    for every γ: the energy per example -⟨max(0, a)⟩ of the solution is negative at every finite η.

    >>> round(critical_eta(10.0, "printed"), 3), critical_eta(0.2, "printed"), critical_eta(10.0)
    (18.61, 0.0, inf)
    """
    gamma = positive("gamma", gamma)
    choice("equations", equations, _KINDS)
    if equations == "exact":
        return math.inf
    found = _printed_roots(gamma)
    return found[-1] if found else 0.0


def _printed_roots(gamma: float) -> list[float]:
    grid = np.geomspace(1e-6, 40.0 + 4.0 * gamma, 4000)
    changes = np.flatnonzero(np.diff(np.sign([critical_eta_condition(x, gamma) for x in grid])))
    return [float(brentq(critical_eta_condition, grid[i], grid[i + 1], args=(gamma,))) for i in changes]


def critical_gamma() -> tuple[float, float]:
    """Give the γ below which Eq. etacinf has no root, and the η at which its last two roots merge.

    >>> tuple(round(x, 3) for x in critical_gamma())
    (0.278, 0.806)
    """

    def depth(gamma: float) -> tuple[float, float]:
        # the condition is positive between two roots (or below zero: none)
        best = minimize_scalar(
            lambda u: critical_eta_condition(math.exp(u), gamma),
            bounds=(-3.0, 1.5),
            method="bounded",
            options={"xatol": 1e-10},
        )
        return float(best.fun), math.exp(float(best.x))

    gamma = float(brentq(lambda g: depth(g)[0], 0.2, 0.4, xtol=1e-12))
    return gamma, depth(gamma)[1]


def hard_onset(gamma: float, gamma_tilde: float | None = None, equations: str = "exact") -> float:
    """η_0 from which on the trivial solution of hard selection exists: -γ̃/2 + γ̃²/(2γ); printed: γ̃²/(4γ).

    >>> hard_onset(10.0), hard_onset(10.0, equations="printed")
    (0.0, -2.5)
    """
    choice("equations", equations, _KINDS)
    gamma = positive("gamma", gamma)
    g = gamma if gamma_tilde is None else positive("gamma_tilde", gamma_tilde)
    return -0.5 * g + g * g / ((4.0 if equations == "printed" else 2.0) * gamma)


@cache
def claims() -> Claims:
    """Tabulate the paper's claims: place, printed, exact, measured, verdict.

    >>> table = claims()
    >>> len(table) >= 10, table[0].key
    (True, 'soft-order-parameters')
    """
    measured = _measured()
    return Claims(
        Claim(
            key=key,
            place=place,
            claim=claim,
            printed=printed,
            exact=exact,
            measured=measured.get(key, "not run"),
            verdict=verdict,
        )
        for key, place, claim, (printed, exact, verdict) in (
            (key, place, claim, compute()) for key, place, claim, compute in _CLAIMS
        )
    )


Row = tuple[str, str, str]
_KINDS: tuple[Literal["printed", "exact"], ...] = ("printed", "exact")


def _soft_order_parameters() -> Row:
    e = Ensemble(0.0, 10.0)
    printed, exact = (solve(SoftSelection(kind), e, 1.0) for kind in _KINDS)
    return (
        f"R = {printed.R:.5f}, Q = {printed.Q:.5f} at α = 1, η = 0, γ = 10",
        f"R = {exact.R:.5f}, Q = {exact.Q:.5f}",
        "The print expands the y-integral about y = 0 to second order; right for small b = γ̃²z/γ only.",
    )


def _soft_transition() -> Row:
    found = transitions(SoftSelection(), Ensemble(4.0, 10.0), 20.0, over="eta", between=(2.0, 6.0))
    first = found[0] if isinstance(found, list | tuple) else found
    spinodals = f"{first.lower_spinodal:.4f} to {first.upper_spinodal:.4f}"
    counts = [len(branches(SoftSelection("printed"), Ensemble(eta, 10.0), 20.0)) for eta in (2.0, 3.9, 4.5)]
    return (
        f"solutions with b < 4 at η = 2, 3.9, 4.5: {counts[0]}, {counts[1]}, {counts[2]}; "
        "I_1..I_4 do not exist beyond b = 4",
        f"first order at η = {first.value:.4f}, two branches from {spinodals} (α = 20, γ = 10)",
        "A first-order transition exists; beyond it the exact solution is not AT-stable.",
    )


def _stability() -> Row:
    e = Ensemble(2.0, 10.0)
    low, high = (solve(SoftSelection(), e.replace(eta=eta), 20.0).at_eigenvalue for eta in (2.0, 4.5))
    return (
        "no stability analysis; replica symmetry breaking assumed small",
        f"AT number at α = 20, γ = 10: {low:.3f} at η = 2, {high:g} at η = 4.5 (stable below 1)",
        "Replica symmetry holds on the informative side only.",
    )


def _r_infinity() -> Row:
    pairs = [SoftSelection().limit(Ensemble(eta, 10.0)) for eta in (0.0, 4.0)]
    wrong = SoftSelection().limit(Ensemble(2.0, 10.0, eta_tilde=0.0))
    return (
        "R_inf and c depend on η",
        f"matched: R_inf = {pairs[0].R_inf:.10f} (η = 0), {pairs[1].R_inf:.10f} (η = 4); "
        f"c = {pairs[0].c:.4f}, {pairs[1].c:.4f}; with η̃ = 0 at η = 2: R_inf = {wrong.R_inf:.4f}",
        "c depends on η; R_inf = 1 always for a matched learner, it moves under mismatch only.",
    )


def _hebb() -> Row:
    e = Ensemble(0.0, 10.0)
    hebb, soft = solve(Hebb(), e, 20.0), solve(SoftSelection(), e, 20.0)
    return (
        "Hebb's Δ does not vanish as α grows, the selection's does",
        f"Δ at α = 20, η = 0, γ = 10: Hebb {hebb.distance:.4f} (limit {Hebb().limit(e).distance:.4f}), "
        f"soft selection {soft.distance:.4f}",
        "Right for Δ. Hebb's direction error Φ does vanish: its length is what stays wrong.",
    )


def _hard_moment() -> Row:
    e = Ensemble(1.0, 10.0)
    printed, exact = (solve(HardSelection(kind), e, 20.0) for kind in _KINDS)
    return (
        f"Q = {printed.Q:.4f}, Φ = {printed.angle:.5f} at α = 20, η = 1, γ = 10 (Q_hat/2)",
        f"Q = {exact.Q:.4f}, Φ = {exact.angle:.5f} (Q_hat)",
        "The factor 1/2 at Q_hat in f_h and in the second moment is a slip.",
    )


def _onset() -> Row:
    return (
        f"η_0 = {hard_onset(10.0, equations='printed'):g} at γ = γ̃ = 10",
        f"η_0 = {hard_onset(10.0):g}",
        "η_0 = -γ̃/2 + γ̃²/(2γ): zero for a matched learner. Follows from the factor above.",
    )


def _hard_transition() -> Row:
    values = []
    for kind in _KINDS:
        found = transitions(
            HardSelection(kind),
            Ensemble(4.0, 10.0),
            20.0,
            over="eta",
            between=(1.0, 8.0),
        )
        trivial = next(t for t in found if t.above.Q == 0.0)
        before = "".join(
            f"R jumps to {t.above.R:.3f} at η = {t.value:.4f} already; " for t in found if t is not trivial
        )
        values.append(f"{before}f = 0 at η_c = {trivial.value:.4f} (α = 20, γ = 10)")
    return (
        values[0],
        values[1],
        "The exact equations lose B before, at a transition to a solution with R near 0 that still selects; "
        "the trivial one wins much later. Their places are estimates, as nothing there is AT-stable.",
    )


def _figure_7() -> Row:
    e = Ensemble(1.5, 0.3)
    gain, finite = HardSelection().limit(e), solve(HardSelection(), e, 20000.0)
    return (
        f"η_c = {critical_eta(10.0, 'printed'):.4f} at γ = 10, {critical_eta(0.3, 'printed'):.4f} at γ = 0.3",
        f"no finite η_c: at γ = 0.3, η = 1.5 energy per example {gain.energy:.4f} < 0, "
        f"R_inf = {gain.R_inf:.4f}, Φ = {finite.angle:.4f} at α = 20000",
        "Its roots come from squaring; there Q_0 - z_0 < 0, so that R would be negative.",
    )


def _threshold() -> Row:
    gamma, eta = critical_gamma()
    limit = HardSelection().limit(Ensemble(0.5, 0.2))
    return (
        f"Eq. etacinf loses its roots at γ = {gamma:.5f} (η = {eta:.3f}); below, η_c = 0",
        f"at γ = 0.2, η = 0.5: R_inf = {limit.R_inf:.4f}, energy per example {limit.energy:.4f} < 0",
        "0.278 is reproduced as a property of Eq. etacinf, but says nothing about hard selection.",
    )


def _arbitrary_fraction() -> Row:
    limits = {eta: SoftSelection().limit(Ensemble(eta, 10.0)) for eta in (0.0, 4.0, 8.0)}
    return (
        "soft selection finds B at any η if α is large enough",
        "; ".join(f"η = {eta:g}: Φ ~ {math.sqrt(x.c) / math.pi:.4g}/√α" for eta, x in limits.items()),
        "Right, and so does hard selection (its R_inf is not 1, but its direction is).",
    )


def _bound() -> Row:
    e = Ensemble(4.0, 10.0)
    best, soft = solve(BayesOptimal(), e, 20.0), solve(SoftSelection(), e, 20.0)
    return (
        "the posterior mean needs Monte Carlo sampling; MAP should not perform too poorly",
        f"α = 20, η = 4, γ = 10: posterior mean Φ = {best.angle:.4f}, MAP Φ = {soft.angle:.4f}",
        "Near the transition MAP is far worse; message passing computes the posterior mean.",
    )


def _constant() -> Row:
    return (
        "C contains (2π)^(-N/2)",
        "the integral over J gives (2π)^(N/2), which cancels it",
        "Without effect on any result: a constant of the energy.",
    )


_CLAIMS: tuple[tuple[str, str, str, Callable[[], Row]], ...] = (
    (
        "soft-order-parameters",
        "Appendix A, I_1-I_7",
        "Order parameters of soft selection",
        _soft_order_parameters,
    ),
    ("soft-transition", "Abstract, Fig. 4", "First-order transition as outliers are added", _soft_transition),
    ("stability", "Sec. 3", "Replica symmetry is at least a good approximation", _stability),
    ("hebb", "Fig. 1", "Selection recovers B, Hebb's rule does not", _hebb),
    ("r-infinity", "Sec. 5.1", "Φ ~ √(c/α)/(π R_inf), both depend on η", _r_infinity),
    (
        "hard-moment",
        "Appendix B, freehard, ordhard:two",
        "Free energy and length of hard selection",
        _hard_moment,
    ),
    ("hard-onset", "Sec. 5.2", "The trivial solution appears at η_0", _onset),
    ("hard-transition", "Fig. 5, 6", "The trivial solution wins beyond η_c(α)", _hard_transition),
    ("figure-7", "Fig. 7, Eq. etacinf", "Hard selection has a critical η at α = infinity", _figure_7),
    ("threshold", "Sec. 5.2", "Below γ = 0.278 the critical η jumps to zero", _threshold),
    (
        "arbitrary-fraction",
        "Sec. 5.2",
        "Soft selection tolerates any fraction of outliers",
        _arbitrary_fraction,
    ),
    ("posterior-mean", "Sec. 2", "The posterior mean is better but hard to compute", _bound),
    ("constant", "Appendix B, C", "Normalisation of H_h", _constant),
)


def _measured() -> dict[str, str]:
    """Put the recorded runs into words, one line per claim."""
    out: dict[str, list[str]] = {}
    text = resources.files("outlearn.theory").joinpath("claims_measured.csv").read_text(encoding="utf-8")
    for row in csv.DictReader(text.splitlines()):
        value: Any = f"{float(row['mean']):.4f} ± {float(row['error']):.4f}"
        out.setdefault(row["claim"], []).append(
            f"{row['quantity']} = {value} ({row['what']}; N = {row['N']}, {row['runs']} runs)"
        )
    return {key: "; ".join(lines) for key, lines in out.items()}
