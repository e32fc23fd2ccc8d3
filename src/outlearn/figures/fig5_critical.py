"""Figure 5: critical η of hard selection as a function of α, with the transition of soft selection."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from outlearn import theory
from outlearn.figures.compare import THEORY
from outlearn.figures.plate import Plate, Setting
from outlearn.figures.style import Book, Panel, legend_below
from outlearn.model import Ensemble
from outlearn.numerics import Status
from outlearn.theory.bayes import thresholds

__all__ = ["bayes_rows", "draw", "transition_lines"]

Row = tuple[float, float, float, float]


def transition_lines(
    learner: Any, alphas: Iterable[float], between: tuple[float, float]
) -> dict[str, list[Row]]:
    """First-order points at each α: where direction is lost ("direction"), where everything is ("trivial").

    A row is α, η, lower and upper spinodal (NaN where the branch reaches the end of the interval). "trivial"
    is where the solution without overlap and length takes over; "direction" any other.

    >>> rows = transition_lines(THEORY["hard"], [20.0], (1.0, 8.0))
    >>> [(name, round(row[1], 4)) for name in sorted(rows) for row in rows[name]]
    [('direction', 3.7416), ('trivial', 5.7118)]
    """
    out: dict[str, list[Row]] = {"direction": [], "trivial": []}
    for alpha in alphas:
        found = theory.transitions(learner, Ensemble(0.0, 10.0), float(alpha), over="eta", between=between)
        for t in found:
            if t.status is not Status.CONVERGED:  # a branch is cut by the end of the interval
                continue
            low, high = (np.nan if x is None else x for x in (t.lower_spinodal, t.upper_spinodal))
            # the collapsed solution of soft selection has Q ~ 1e-4, the trivial one of hard selection 0
            name = "trivial" if t.above.Q < 0.05 else "direction"
            out[name].append((float(alpha), t.value, low, high))
    return out


def draw(setting: Setting) -> Plate:
    """Make figure 5."""
    alphas = np.union1d(np.geomspace(2.0, 100.0, setting.pick(48, 18, 2)), [20.0])
    hard = transition_lines(THEORY["hard"], alphas, (-1.0, 14.0))
    printed = transition_lines(theory.HardSelection("printed"), alphas, (-1.0, 14.0))
    soft = transition_lines(THEORY["soft"], alphas, (-1.0, 14.0))

    book = Book()
    figure = Figure(figsize=(6.6, 5.0), layout="constrained")
    panel = Panel(figure.subplots(), "a", book)

    def line(rows: list[Row], learner: str, kind: str, series: str, label: str, **style: Any) -> None:
        if rows:
            x, y = np.array(rows)[:, :2].T
            panel.curve(x, y, learner=learner, kind=kind, series=series, label=label, **style)

    line(
        hard["trivial"],
        "hard",
        "equilibrium",
        "hard, trivial solution wins",
        "hard selection: nothing is selected beyond",
    )
    line(
        hard["direction"],
        "hard",
        "equilibrium",
        "hard, direction lost",
        "hard selection: direction lost beyond",
        linewidth=1.1,
        color="#F0A070",
    )
    line(
        printed["trivial"] + printed["direction"],
        "hard",
        "printed",
        "hard, printed",
        "hard selection, as printed (figure 5)",
        linewidth=1.0,
    )
    line(
        soft["direction"],
        "soft",
        "metastable",
        "soft, direction lost",
        "soft selection: direction lost beyond",
        linewidth=1.7,
    )
    line(
        soft["trivial"],
        "soft",
        "unstable",
        "soft, collapse",
        "soft selection: Q collapses beyond",
    )
    bayes = bayes_rows(4.0629, 5.2, setting.pick(60, 30, 3))
    line(
        bayes,
        "bayes",
        "bound",
        "bayes",
        "Bayes bound: first order",
    )
    panel.axes.set_xscale("log")
    panel.axes.set_xticks([2, 5, 10, 20, 50, 100])
    panel.axes.xaxis.set_major_formatter("{x:g}")
    panel.axes.xaxis.set_minor_formatter("")
    panel.axes.set(xlabel="α = P/N", ylabel="critical η", xlim=(2.0, 100.0))
    fractions = panel.axes.secondary_yaxis("right")
    shown = np.array([0.5, 0.73, 0.88, 0.95, 0.982, 0.993, 0.9991, 0.9999, 0.99999])
    fractions.set_yticks(np.log(shown / (1.0 - shown)), [f"{100 * p:g} %" for p in shown])
    fractions.set_ylabel("outliers")
    panel.axes.set_title("Critical fraction of outliers, γ = γ̃ = 10")
    legend_below(figure, panel.axes, 2)

    def at(rows: list[Row], alpha: float) -> float:
        x, y = np.array(rows)[:, :2].T if rows else (np.array([alpha]), np.array([np.nan]))
        return float(np.interp(alpha, x, y, left=np.nan, right=np.nan))

    return Plate(
        name="fig5",
        title="Critical fraction of outliers",
        caption="Where the equilibrium changes, against α. Hard selection: the paper's solid line as "
        "printed (thin) and exact, where direction is lost before the trivial solution wins; soft "
        "selection: the paper's dashed line, and the collapse of Q.",
        figure=figure,
        book=book,
        findings=[
            "At α = 20 the printed equations give η_c = "
            f"{at(printed['trivial'] + printed['direction'], 20.0):.3f}; exact, direction is lost at "
            f"{at(hard['direction'], 20.0):.3f} and the trivial solution wins at "
            f"{at(hard['trivial'], 20.0):.3f}; soft selection loses direction at "
            f"{at(soft['direction'], 20.0):.3f}.",
            "Every critical η grows with α: at α = 100 hard selection loses direction at "
            f"{at(hard['direction'], alphas[-1]):.3f}, soft selection at "
            f"{at(soft['direction'], alphas[-1]):.3f}.",
            "At every α shown soft selection keeps the direction longer than hard selection, as in the "
            "paper; the bound shows how little is left to gain.",
        ],
    )


def bayes_rows(low: float, high: float, count: int) -> list[Row]:
    """The bound's first-order line as rows of α, η, and α of its two spinodals: informative, algorithmic.

    >>> [round(x, 3) for x in bayes_rows(5.0, 5.0, 1)[0]]
    [80.579, 5.0, 76.762, 97.414]
    """
    found = (thresholds(float(eta), 10.0) for eta in np.linspace(low, high, count))
    return [(t.information_theoretic, t.eta, t.appears, t.algorithmic) for t in found if t is not None]
