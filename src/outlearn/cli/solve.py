"""``outlearn solve``: the theory at one point."""

from __future__ import annotations

from typing import Annotated, Any, cast

import typer

from outlearn.cli.learners import Beta, LearnerNames, Regularization
from outlearn.cli.options import AsJson
from outlearn.cli.output import print_json, print_table

__all__ = ["solve"]

_BRANCHES = ("equilibrium", "informative", "uninformative", "all")


def solve(
    alpha: Annotated[float, typer.Option("--alpha", "-a", help="Examples per dimension, > 0.")],
    eta: Annotated[float | None, typer.Option("--eta", "-e", help="η: outliers are 1/(1 + e^-η).")] = None,
    contamination: Annotated[
        float | None, typer.Option("--contamination", "-c", help="Outlier fraction, instead of --eta.")
    ] = None,
    gamma: Annotated[
        float, typer.Option("--gamma", "-g", help="Inverse variance of the clusters, > 0.")
    ] = 10.0,
    learner: LearnerNames = ["soft"],  # noqa: B006  # typer copies it
    branch: Annotated[str, typer.Option("--branch", "-b", help=f"One of {', '.join(_BRANCHES)}.")] = "all",
    beta: Beta = None,
    regularization: Regularization = None,
    as_json: AsJson = False,
) -> None:
    """Solve the theory at one point: order parameters, errors and stability of every branch.

    R and Q are the overlaps with the truth and with itself, Phi the direction error, f the free energy per
    dimension (lowest first: the equilibrium), "stable" the de Almeida-Thouless condition.

    \b
    Examples:
      outlearn solve --alpha 20 --eta 4
      outlearn solve --alpha 2 --contamination 0.8 -L soft -L bayes -L logistic --branch equilibrium
    """
    from outlearn import theory
    from outlearn.cli import learners
    from outlearn.exceptions import ConvergenceError, ParameterError

    if branch not in _BRANCHES:
        raise ParameterError("branch", branch, f"one of {', '.join(_BRANCHES)}")
    world = learners.ensemble(gamma, eta, contamination)
    points = []
    for name, rule in learners.several(learner, beta, regularization).items():
        if branch == "all":
            found = [(name, point) for point in theory.branches(rule, world, alpha)]
        else:
            found = [(name, theory.solve(rule, world, alpha, branch=cast(Any, branch)))]
        if not found:
            raise ConvergenceError(f"no solution of {name} was found at alpha = {alpha:g}")
        points += found
    if as_json:
        print_json([{"name": name, **point.to_dict()} for name, point in points])
        return
    print_table(
        ("learner", "branch", "R", "Q", "z", "Q_hat", "f", "Phi", "Delta", "test error", "stable", "status"),
        [
            (
                name,
                p.branch,
                p.R,
                p.Q,
                p.z,
                p.Q_hat,
                p.free_energy,
                p.angle,
                p.distance,
                p.test_error,
                p.stable,
                p.status.name,
            )
            for name, p in points
        ],
        title=f"alpha = {alpha:g}, gamma = {gamma:g}, eta = {world.eta:.6g} "
        f"({100 * world.outlier_fraction:.4g} % outliers)",
    )
