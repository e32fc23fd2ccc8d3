"""The phase diagram shows what it was given: errors, lines, several branches, failures."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from outlearn import theory
from outlearn.figures.diagram import draw_diagram
from outlearn.numerics import Status


@pytest.fixture(scope="module")
def diagram():
    return theory.phase_diagram(
        theory.SoftSelection(), gamma=10, alphas=[5.0, 10.0, 20.0, 40.0], etas=[3.0, 3.9, 5.0]
    )


def drawn(axes):
    return {line.get_label(): line for line in axes.get_legend().legend_handles}


def test_colours_are_the_equilibriums_errors(diagram):
    axes = draw_diagram(diagram).axes[0]
    shown = np.asarray(axes.collections[0].get_array()).reshape(4, 3)
    np.testing.assert_allclose(shown, diagram.at_equilibrium("angle"))
    assert axes.get_yscale() == "log"


def test_every_kind_of_line_is_named_and_every_line_drawn(diagram):
    axes = draw_diagram(diagram).axes[0]
    assert {line.kind for line in diagram.lines} <= set(drawn(axes))
    curves = [line for line in axes.lines if line.get_linestyle() not in ("None", "")]
    assert len(curves) == len(diagram.lines)
    np.testing.assert_array_equal(curves[0].get_xdata(), _first(diagram, "first order").eta)


def test_several_branches_are_dotted(diagram):
    axes = draw_diagram(diagram).axes[0]
    dots = next(line for line in axes.lines if line.get_label() == "several branches")
    assert len(dots.get_xdata()) == (diagram.n_branches > 1).sum() > 0


def test_failures_are_crossed(diagram):
    status = diagram.status.copy()
    status[1, 2] = Status.NO_SOLUTION
    axes = draw_diagram(dataclasses.replace(diagram, status=status)).axes[0]
    crosses = next(line for line in axes.lines if line.get_label() == "not converged")
    assert (crosses.get_xdata()[0], crosses.get_ydata()[0]) == (diagram.etas[2], diagram.alphas[1])
    assert "not converged" not in drawn(draw_diagram(diagram).axes[0])


def test_one_point_and_no_line_draw_too(tmp_path):
    single = theory.phase_diagram(theory.Hebb(), gamma=10, alphas=[5.0], etas=[1.0])
    figure = draw_diagram(single, title="one")
    assert figure.axes[0].get_title() == "one"
    assert figure.axes[0].get_legend() is None
    figure.savefig(tmp_path / "one.png")


def _first(diagram, kind):
    return next(line for line in diagram.lines if line.kind == kind)
