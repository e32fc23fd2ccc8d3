"""Figure 3: R(α, η) and Q(α, η) of soft selection, as reliefs and as maps with its transition lines."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from outlearn import theory
from outlearn.figures.compare import THEORY
from outlearn.figures.fig5_critical import transition_lines
from outlearn.figures.plate import Plate, Setting
from outlearn.figures.style import Book
from outlearn.numerics import Status

__all__ = ["draw", "stability_line"]

_LINES: dict[str, dict[str, Any]] = {
    "first order": {"color": "white", "linewidth": 2.0, "linestyle": "-"},
    "lower spinodal": {"color": "white", "linewidth": 1.1, "linestyle": (0, (4, 2))},
    "upper spinodal": {"color": "white", "linewidth": 1.1, "linestyle": (0, (1, 1.5))},
    "stability": {"color": "#FF3B30", "linewidth": 1.4, "linestyle": "-."},
}

_WORDS = {"direction": "direction is lost", "trivial": "length collapses"}


def stability_line(diagram: theory.PhaseDiagram) -> NDArray[np.float64]:
    """Rows α, η where the equilibrium first ceases to be AT-stable as η grows."""
    first: dict[float, float] = {}
    for line in diagram.lines:
        if line.kind == "stability":
            for alpha, eta in zip(line.alpha.tolist(), line.eta.tolist(), strict=True):
                first[alpha] = min(eta, first.get(alpha, np.inf))
    return np.array(sorted(first.items())).reshape(-1, 2)


def draw(setting: Setting) -> Plate:
    """Make figure 3."""
    etas = np.linspace(0.0, 10.0, setting.pick(101, 61, 6))
    alphas = np.linspace(1.0, 50.0, setting.pick(50, 29, 3))
    diagram = theory.phase_diagram(THEORY["soft"], gamma=10.0, alphas=alphas, etas=etas)

    found = transition_lines(THEORY["soft"], setting.pick(alphas, alphas, alphas[1:]), (-1.0, 14.0))
    jumps = {name: np.array(rows).reshape(-1, 4) for name, rows in found.items() if len(rows) > 1}
    broken = stability_line(diagram)

    book = Book()
    figure = Figure(figsize=(9.2, 7.6), layout="constrained")
    mesh_eta, mesh_alpha = np.meshgrid(etas, alphas)
    values = {name: diagram.at_equilibrium(name) for name in ("R", "Q")}
    for column, name in enumerate(("R", "Q")):
        z = values[name]
        relief = figure.add_subplot(2, 2, column + 1, projection="3d")
        relief.plot_surface(
            mesh_eta,
            mesh_alpha,
            z,
            cmap="viridis",
            vmin=0.0,
            vmax=1.05,
            rcount=len(alphas),
            ccount=len(etas),
            edgecolor="black",
            linewidth=0.12,
            antialiased=True,
        )
        relief.view_init(elev=28, azim=-52)
        relief.set(xlabel="η", ylabel="α", zlim=(0.0, 1.1))
        relief.set_title(f"{name}(α, η)", y=0.97)
        relief.set_box_aspect((1.15, 1.0, 0.7), zoom=0.92)

        plane = figure.add_subplot(2, 2, column + 3)
        colors = plane.pcolormesh(
            etas, alphas, z, cmap="viridis", vmin=0.0, vmax=1.05, shading="nearest", rasterized=True
        )
        figure.colorbar(colors, ax=plane, label=name, shrink=0.9)
        for rows in jumps.values():
            for k, kind in enumerate(("first order", "lower spinodal", "upper spinodal"), start=1):
                plane.plot(rows[:, k], rows[:, 0], **_LINES[kind])
        plane.plot(broken[:, 1], broken[:, 0], **_LINES["stability"])
        plane.set(xlabel="η   (outliers are 1/(1 + e^-η))", ylabel="α", xlim=(0.0, 10.0), ylim=(1.0, 50.0))
        plane.grid(False)
        book.write(
            name,
            "soft, equilibrium",
            "equilibrium",
            eta=mesh_eta.ravel(),
            alpha=mesh_alpha.ravel(),
            value=z.ravel(),
        )
    for name, rows in jumps.items():
        for k, kind in enumerate(("first order", "lower spinodal", "upper spinodal"), start=1):
            book.write("lines", f"soft, {name}, {kind}", kind, eta=rows[:, k], alpha=rows[:, 0])
    book.write("lines", "soft, AT line", "stability", eta=broken[:, 1], alpha=broken[:, 0])
    names = {"stability": "AT line: replica symmetry holds to the left"}
    handles = [
        Line2D(
            [],
            [],
            **(style | ({"color": "black"} if kind != "stability" else {})),
            label=names.get(kind, kind),
        )
        for kind, style in _LINES.items()
    ]
    figure.legend(
        handles=handles, loc="outside lower center", ncols=4, title="lines in the maps (white there)"
    )
    converged = int(sum(s is Status.CONVERGED for s in diagram.status.flat))
    return Plate(
        name="fig3",
        title="Order parameters of soft selection over α and η",
        caption="R and Q of the equilibrium (the solution of lowest free energy) at γ = γ̃ = 10: reliefs "
        "above, maps with the lines of the first-order transitions, their spinodals and the AT line "
        "below.",
        figure=figure,
        book=book,
        findings=[
            f"{converged} of {diagram.status.size} points have all branches, by the signed count of "
            f"solutions; up to {diagram.R.shape[2]} solutions at one point: three, as the paper says, at "
            "large α or η.",
            *(
                f"First order where the {_WORDS[name]}: from α = {rows[0, 0]:.3g}, η = {rows[0, 1]:.3f} to "
                f"α = {rows[-1, 0]:.3g}, η = {rows[-1, 1]:.3f}."
                for name, rows in jumps.items()
            ),
        ],
    )
