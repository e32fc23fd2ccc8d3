"""``outlearn plan``: examples for a target error, and what checking labels by hand would buy."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from outlearn.cli.options import AsJson, DropMissing
from outlearn.cli.output import about, atomic, check_writable, print_json, print_table, say

__all__ = ["plan"]


def plan(
    target_error: Annotated[
        float, typer.Option("--target-error", "-t", help="The error to reach, in (0, 1/2).")
    ],
    data: Annotated[
        str | None, typer.Argument(metavar="[DATA]", help="Labelled table; without it give an ensemble.")
    ] = None,
    label: Annotated[
        str | None, typer.Option("--label", "-l", help="The column that holds the classes.")
    ] = None,
    kind: Annotated[
        str, typer.Option(help="test: wrong predictions on clean examples; direction: angle over pi.")
    ] = "test",
    max_samples: Annotated[
        int | None, typer.Option(help="The most examples that could be collected.")
    ] = None,
    contamination: Annotated[
        float | None, typer.Option(help="Without a table: fraction of garbage.", min=0.0, max=0.9999)
    ] = None,
    gamma: Annotated[
        float | None, typer.Option(help="Without a table: inverse variance of a cluster.")
    ] = None,
    features: Annotated[int | None, typer.Option(help="Without a table: number of features.")] = None,
    samples: Annotated[int | None, typer.Option(help="Without a table: examples at hand.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="CSV file for the learning curves.")
    ] = None,
    drop_missing: DropMissing = False,
    as_json: AsJson = False,
) -> None:
    """Say how many examples a target error needs, and what checking labels by hand would buy instead.

    \b
    Examples:
      outlearn plan data.csv --label y --target-error 0.02
      outlearn plan -t 0.1 --kind direction --contamination 0.8 --gamma 10 --features 100
    """
    from outlearn.exceptions import ParameterError
    from outlearn.model import Ensemble
    from outlearn.practice import diagnose
    from outlearn.practice import plan as make_plan
    from outlearn.practice.planning import check_goal
    from outlearn.practice.tables import read_table

    if output is not None:
        check_writable(output)
    check_goal(target_error, kind, max_samples)  # before minutes are spent on data
    rows = None
    ensemble = {"contamination": contamination, "gamma": gamma, "features": features, "samples": samples}
    if data is not None:
        if label is None:
            raise typer.BadParameter("a table needs --label, the column that holds the classes")
        for name, value in ensemble.items():
            if value is not None:
                raise ParameterError(name, value, "left out together with a table, which says it itself")
        table = read_table(data, label=label, drop_missing=drop_missing, drop_constant=True)
        for notice in table.notices:
            say(notice)
        with about(table.source):
            source = diagnose(table.X, table.y)
        for note in source.warnings:
            say(f"note: {note}")
        if not source.detected:
            if as_json:
                print_json({"verdict": source.verdict, "target_error": target_error, "reachable": None})
            else:
                print(source.verdict)
            raise typer.Exit(1)
        rows = table.X.index
        found = make_plan(source, target_error=target_error, max_samples=max_samples, kind=kind)
    else:
        missing = [f"--{name}" for name, value in ensemble.items() if value is None and name != "samples"]
        if missing:
            raise typer.BadParameter(f"give a table and --label, or {', '.join(missing)}")
        found = make_plan(
            Ensemble.from_contamination(contamination, gamma=gamma),  # type: ignore[arg-type]
            target_error=target_error,
            max_samples=max_samples,
            kind=kind,
            n_features=features,
            n_samples=samples,
        )
    if output is not None:
        with atomic(output) as temporary:
            found.to_frame().to_csv(temporary, index=False)
        say(f"learning curves in {output}")
    first = [] if rows is None else [int(r) for r in rows[found.check_first]]
    if as_json:
        print_json({**found.to_dict(), "check_first": first})
        return
    print(found.verdict)
    print_table(
        ("learner", "examples", "from", "to", ""),
        [(n.learner, n.n_samples, n.low, n.high, n.reason) for n in found.needs],
        title=f"examples for a {kind} error of {target_error:g}, 90 % interval",
    )
    if found.checking:
        print_table(
            ("checked by hand", "error, random", "worth new examples", "error, most doubtful", "worth"),
            [
                (c.n_checked, c.error_random, c.worth_random, c.error_doubtful, c.worth_doubtful)
                for c in found.checking
            ],
            title="what checking labels would buy the Bayes learner",
            digits=3,
        )
    if first:
        print("Rows to check first:", ", ".join(str(r) for r in first[:20]))
