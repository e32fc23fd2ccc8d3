"""The demo's picture: who was taken for informative, and what each learner made of the same data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

__all__ = ["draw_demo"]

_INFORMATIVE, _GARBAGE, _PLAIN = "#0072B2", "#D55E00", "#8C8C8C"  # told apart by every kind of colour vision


def draw_demo(
    inlier_proba: NDArray[Any],
    informative: NDArray[np.bool_],
    fields: NDArray[Any],
    errors: Mapping[str, float],
) -> Figure:
    """Draw the inlier probabilities by truth, the folded fields, and the direction errors.

    ``fields`` are the projections of the folded examples on the learned centre, in units of its length:
    informative examples gather around 1, garbage around 0.
    """
    figure = Figure(figsize=(12.0, 3.9), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    groups = (("garbage", ~informative, _GARBAGE), ("informative", informative, _INFORMATIVE))
    for axes, values, bins in (
        (left, inlier_proba, np.linspace(0.0, 1.0, 26)),
        (middle, fields, np.linspace(fields.min(), fields.max(), 41)),
    ):
        for name, members, color in groups:
            axes.hist(values[members], bins=bins, color=color, alpha=0.65, label=name)
        axes.set_ylabel("examples")
        axes.legend(frameon=False)
    left.set_yscale("log")
    left.set_xlabel("inlier probability found by soft selection")
    left.set_title("whom it trusts (the learner sees no colours)")
    middle.set_xlabel("projection on the learned centre")
    middle.set_title("what it goes by")

    names = sorted(errors, key=lambda name: -errors[name])
    angles = [errors[name] for name in names]
    bars = right.barh(names, angles, color=[_INFORMATIVE if "selection" in n else _PLAIN for n in names])
    right.bar_label(bars, fmt="%.3f", padding=3)
    right.set_xlim(0.0, 1.15 * max(angles))
    right.set_xlabel("direction error Φ (0.5: blind guess)")
    right.set_title("the same data, five learners")
    for axes in (left, middle, right):
        axes.spines[["top", "right"]].set_visible(False)
    return figure
