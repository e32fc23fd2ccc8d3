"""Phase diagrams: the direction error of the equilibrium over (η, α), with the lines between phases."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullFormatter

from outlearn.numerics import Status

if TYPE_CHECKING:
    from outlearn.theory import PhaseDiagram

__all__ = ["draw_diagram"]

_LINES: dict[str, dict[str, Any]] = {
    "first order": {"color": "white", "linewidth": 2.0, "linestyle": "-"},
    "lower spinodal": {"color": "white", "linewidth": 1.2, "linestyle": "--"},
    "upper spinodal": {"color": "white", "linewidth": 1.2, "linestyle": "-."},
    "stability": {"color": "black", "linewidth": 1.2, "linestyle": ":"},
}


def draw_diagram(diagram: PhaseDiagram, title: str | None = None) -> Figure:
    """Draw a phase diagram: Φ of the equilibrium in colour, boundaries as lines, failures as crosses.

    Points where several branches coexist are dotted. The scale of α is logarithmic where its values are.
    """
    figure = Figure(figsize=(7.0, 5.0), layout="constrained")
    axes = figure.subplots()
    angle = diagram.at_equilibrium("angle")
    mesh = axes.pcolormesh(
        diagram.etas,
        diagram.alphas,
        angle,
        cmap="viridis_r",
        vmin=0.0,
        vmax=0.5,
        shading="nearest",
        rasterized=True,
    )
    figure.colorbar(mesh, ax=axes, label="direction error Φ of the equilibrium")
    handles = []
    for kind, style in _LINES.items():
        lines = [line for line in diagram.lines if line.kind == kind]
        for line in lines:
            axes.plot(
                line.eta, line.alpha, **style, marker="o" if len(line.alpha) == 1 else None, markersize=3
            )
        if lines:
            handles.append(Line2D([], [], **style, label=kind))
    a, e = np.nonzero((diagram.n_branches > 1) & (diagram.status == Status.CONVERGED))
    if len(a):
        dots = axes.plot(diagram.etas[e], diagram.alphas[a], ".", color="white", markersize=2, alpha=0.6)
        dots[0].set_label("several branches")
        handles += dots
    a, e = np.nonzero(diagram.status != Status.CONVERGED)
    if len(a):
        crosses = axes.plot(diagram.etas[e], diagram.alphas[a], "x", color="red", markersize=4)
        crosses[0].set_label("not converged")
        handles += crosses
    if _geometric(diagram.alphas):
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_xlim(*_edges(diagram.etas))
    axes.set_xlabel("η  (outliers are 1/(1 + e^-η))")
    axes.set_ylabel("α  (examples per dimension)")
    axes.set_title(title or f"{diagram.learner!r}, γ = {diagram.gamma:g}", fontsize="medium")
    if handles:
        axes.legend(
            handles=handles,
            loc="upper left",
            fontsize=8,
            facecolor="0.55",
            labelcolor="black",
            framealpha=0.8,
        )
    return figure


def _geometric(values: Any) -> bool:
    return len(values) > 2 and values[-1] / values[0] > 5.0 and bool(np.ptp(np.diff(np.log(values))) < 1e-6)


def _edges(values: Any) -> tuple[float, float]:
    if len(values) == 1:
        return float(values[0]) - 0.5, float(values[0]) + 0.5
    return float(1.5 * values[0] - 0.5 * values[1]), float(1.5 * values[-1] - 0.5 * values[-2])
