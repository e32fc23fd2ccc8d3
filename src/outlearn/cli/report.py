"""``outlearn report``: a self-contained HTML report about a labelled table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from outlearn.cli.options import AsJson, DropMissing, LabelColumn, Source
from outlearn.cli.output import about, atomic, check_writable, print_json, say

__all__ = ["report"]


def report(
    data: Source,
    label: LabelColumn,
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to write the report.")] = Path(
        "report.html"
    ),
    classes: Annotated[
        str | None,
        typer.Option(help="Two labels, separated by a comma; of more classes the hardest pair otherwise."),
    ] = None,
    target_error: Annotated[
        float | None, typer.Option("--target-error", "-t", help="A test error to plan for.")
    ] = None,
    folds: Annotated[
        int, typer.Option(help="Folds of the comparison with plain classifiers; 0 leaves it out.", min=0)
    ] = 5,
    drop_missing: DropMissing = False,
    as_json: AsJson = False,
) -> None:
    """Write a self-contained HTML report: the verdict first, then the pictures that support it.

    The file needs no network and appears only when it is complete.

    \b
    Examples:
      outlearn report data.csv --label y
      outlearn report data.csv --label y -o report.html --target-error 0.02
    """
    import numpy as np

    from outlearn.cli.diagnose import pair
    from outlearn.figures.report import write_report
    from outlearn.practice import diagnose
    from outlearn.practice.planning import check_goal
    from outlearn.practice.tables import read_table

    check_writable(output)
    if target_error is not None:
        check_goal(target_error)
    table = read_table(data, label=label, drop_missing=drop_missing, drop_constant=True)
    for notice in table.notices:
        say(notice)
    with about(table.source):
        found = diagnose(table.X, table.y, classes=pair(classes, table.y))
    with atomic(output) as temporary:
        write_report(
            temporary,
            found,
            table.X,
            np.asarray(table.y),
            title=f"{table.source}: {label}",
            target_error=target_error,
            n_folds=folds,
            notices=table.notices,
        )
    if as_json:
        print_json({"report": str(output), "verdict": found.verdict})
    else:
        print(found.verdict)
        say(f"the report is in {output}")
