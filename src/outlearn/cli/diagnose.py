"""``outlearn diagnose``: how much of a table is garbage, and what error to expect."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from outlearn.cli.options import AsJson, DropMissing, LabelColumn, Source
from outlearn.cli.output import about, atomic, check_writable, print_json, print_table, say

__all__ = ["diagnose"]


def diagnose(
    data: Source,
    label: LabelColumn,
    classes: Annotated[
        str | None,
        typer.Option(help="Two labels, separated by a comma; of more classes the hardest pair otherwise."),
    ] = None,
    covariance: Annotated[
        str, typer.Option(help="Shape of the noise: spherical, diag, tied, or auto.")
    ] = "auto",
    fdr: Annotated[
        float, typer.Option(help="Share of false verdicts allowed among kept and among discarded examples.")
    ] = 0.05,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="CSV file for the verdict on every example.")
    ] = None,
    drop_missing: DropMissing = False,
    as_json: AsJson = False,
) -> None:
    """Estimate how much of a labelled table is garbage, and predict what can be learned from the rest.

    Prints estimates with 90 % intervals, the error to expect of every learner, the distance to the transition
    beyond which nothing is learned, and how far the data look like the model.

    \b
    Examples:
      outlearn diagnose data.csv --label y
      outlearn diagnose data.csv --label y -o verdicts.csv --json
    """
    import numpy as np

    from outlearn.practice import diagnose as diagnose_data
    from outlearn.practice.tables import read_table

    if output is not None:
        check_writable(output)
    table = read_table(data, label=label, drop_missing=drop_missing, drop_constant=True)
    for notice in table.notices:
        say(notice)
    with about(table.source):
        found = diagnose_data(
            table.X, table.y, fdr=fdr, covariance=covariance, classes=pair(classes, table.y)
        )
    names = table.X.index[found.verdicts.index]  # rows as in the file
    if output is not None:
        verdicts = found.verdicts.to_frame()
        verdicts["row"] = names
        verdicts.insert(1, "label", np.asarray(table.y)[found.verdicts.index])
        with atomic(output) as temporary:
            verdicts.to_csv(temporary, index=False)
        say(f"{len(verdicts)} verdicts in {output}")
    if as_json:
        document = {"data": table.source, "label": label, **found.to_dict()}
        for example, row in zip(document["verdicts"]["examples"], names, strict=True):
            example["row"] = row
        print_json(document)
        return
    print(found.verdict)
    e = found.effective
    shown = ("contamination", "label_noise", "noise_variance", "gamma", "eta")
    rows = [(name.replace("_", " "), *(getattr(e, name).to_dict().values())) for name in shown]
    print_table(("", "estimate", "from", "to"), rows, title="estimates, 90 % intervals", digits=3)
    if found.predictions:
        print_table(
            ("learner", "test error", "from", "to", "direction error", "from", "to", "note"),
            [
                (
                    p.learner + (" (use this)" if p.learner == found.recommended else ""),
                    *p.test_error.to_dict().values(),
                    *p.direction_error.to_dict().values(),
                    p.note,
                )
                for p in found.predictions
            ],
            title="errors to expect now, from the theory",
            digits=3,
        )
    for position in found.positions:
        for sentence in position.sentences:
            print(sentence)
    if found.detected:
        print(f"Trust: {found.goodness.trust}. {found.goodness.statement}")
    for note in found.warnings:
        say(f"note: {note}")


def pair(classes: str | None, y: object) -> tuple[object, object] | None:
    """Find the two labels that a text names, separated by a comma.

    >>> pair("0, 7", [0, 7, 9]), pair("no,yes, of course", ["no", "yes, of course"])
    ((0, 7), ('no', 'yes, of course'))
    """
    if classes is None:
        return None
    import numpy as np

    from outlearn.exceptions import ParameterError

    found = np.unique(np.asarray(y)).tolist()
    names = {str(label): label for label in found}
    loosely = {name.casefold(): name for name in names}
    for k, letter in enumerate(classes):
        if letter == ",":
            parts = (classes[:k].strip(), classes[k + 1 :].strip())
            one, other = (part if part in names else loosely.get(part.casefold()) for part in parts)
            if one is not None and other is not None:
                return names[one], names[other]
    shown = ", ".join(str(label) for label in found[:10]) + (", ..." if len(found) > 10 else "")
    raise ParameterError("classes", classes, f"two of the labels {shown}, separated by a comma")
