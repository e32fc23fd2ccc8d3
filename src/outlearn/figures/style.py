"""One look for all figures: a colour per learner, a line per kind of solution, and what is drawn kept."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["COLORS", "KINDS", "RC", "Book", "Panel", "legend", "legend_below"]

# Okabe and Ito's palette, told apart by every kind of colour vision.
COLORS: dict[str, str] = {
    "soft": "#0072B2",
    "hard": "#D55E00",
    "hebb": "#8C8C8C",
    "bayes": "#000000",
    "amp": "#009E73",
    "logistic": "#CC79A7",
    "hinge": "#56B4E9",
    "square": "#E69F00",
    "huber": "#7B5EA7",
    "squared hinge": "#A6761D",
}

# How a solution is drawn: what is stable is heavy, what no algorithm stays on is light.
KINDS: dict[str, dict[str, Any]] = {
    "equilibrium": {"linestyle": "-", "linewidth": 1.8, "zorder": 3.0},
    "metastable": {"linestyle": (0, (5, 2)), "linewidth": 1.3, "zorder": 2.5},
    "unstable": {"linestyle": (0, (1.2, 1.6)), "linewidth": 1.1, "zorder": 2.4},
    "printed": {"linestyle": "-", "linewidth": 0.7, "zorder": 2.2},
    "printed metastable": {"linestyle": (0, (5, 2)), "linewidth": 0.7, "zorder": 2.1},
    "bound": {"linestyle": "-.", "linewidth": 1.2, "zorder": 2.3},
    "asymptote": {"linestyle": ":", "linewidth": 1.0, "zorder": 2.0},
}

RC: dict[str, Any] = {
    "font.size": 9.0,
    "axes.titlesize": 9.5,
    "axes.labelsize": 9.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "0.92",
    "grid.linewidth": 0.6,
    "legend.fontsize": 7.8,
    "legend.frameon": False,
    "legend.handlelength": 2.4,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "savefig.dpi": 150,
    "svg.hashsalt": "outlearn",
    "figure.facecolor": "white",
}

Array = NDArray[np.float64]


@dataclass(slots=True)
class Book:
    """Everything that a figure draws, row by row: what goes into its CSV."""

    rows: list[dict[str, Any]] = field(default_factory=list)

    def write(self, panel: str, series: str, kind: str, **columns: ArrayLike | None) -> None:
        """Note the points of one series; a column may be one value for all."""
        given = {name: np.asarray(x) for name, x in columns.items() if x is not None}
        several = np.broadcast_arrays(*(np.atleast_1d(x) for x in given.values()))
        for values in zip(*(x.ravel().tolist() for x in several), strict=True):
            row = dict(zip(given, values, strict=True))
            self.rows.append({"panel": panel, "series": series, "kind": kind} | row)

    def to_frame(self) -> Any:
        """Return a pandas table."""
        import pandas as pd

        return pd.DataFrame(self.rows)


@dataclass(frozen=True, slots=True)
class Panel:
    """Axes that note what is drawn into them."""

    axes: Any
    name: str
    book: Book

    def curve(
        self,
        x: ArrayLike,
        y: ArrayLike,
        *,
        learner: str,
        kind: str = "equilibrium",
        series: str | None = None,
        label: str | None = None,
        **style: Any,
    ) -> None:
        """Draw a theoretical curve in the learner's colour and the kind's line."""
        settings = KINDS[kind] | {"color": COLORS[learner]} | style
        self.axes.plot(x, y, label=label, **settings)
        self.book.write(self.name, series or learner, kind, x=x, y=y)

    def runs(
        self,
        x: ArrayLike,
        y: ArrayLike,
        *,
        deviation: ArrayLike,
        error: ArrayLike,
        learner: str,
        series: str,
        count: ArrayLike | None = None,
        label: str | None = None,
        beside: float = 1.0,
        **style: Any,
    ) -> None:
        """Draw means over runs; bars are standard deviations over runs, as in the paper.

        ``beside`` multiplies where they are drawn, so that series do not cover each other.
        """
        color = style.pop("color", COLORS[learner])
        settings: dict[str, Any] = {
            "fmt": "o",
            "markersize": 4.2,
            "markerfacecolor": "white",
            "markeredgewidth": 1.1,
            "color": color,
            "elinewidth": 1.0,
            "capsize": 2.2,
            "zorder": 4.0,
        }
        self.axes.errorbar(np.asarray(x) * beside, y, yerr=deviation, label=label, **(settings | style))
        self.book.write(
            self.name,
            series,
            "runs",
            x=x,
            y=y,
            standard_deviation=deviation,
            standard_error=error,
            runs=count,
        )


def legend_below(figure: Any, axes: Any, columns: int = 3) -> None:
    """Put the legend under the figure, where it covers nothing."""
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=columns)


def legend(axes: Any, **settings: Any) -> None:
    """Add a legend on a pale ground, so that grid lines and curves do not cross its text."""
    found = axes.legend(**({"frameon": True, "framealpha": 0.9, "edgecolor": "none"} | settings))
    found.set_zorder(10)
