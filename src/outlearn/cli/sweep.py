"""``outlearn sweep``: a phase diagram as a table and as a picture."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from outlearn.cli.learners import Beta, LearnerNames, Regularization
from outlearn.cli.options import AsJson
from outlearn.cli.output import atomic, check_writable, print_json, print_table, say

__all__ = ["parse_range", "sweep"]


def sweep(
    alphas: Annotated[
        str, typer.Option(help="Range of α, as FROM:TO:STEP, or FROM:TO:COUNT:log to space it in ratio.")
    ] = ("0.5:50:24:log"),
    etas: Annotated[str, typer.Option(help="Range of η, likewise.")] = "0:8:0.25",
    gamma: Annotated[
        float, typer.Option("--gamma", "-g", help="Inverse variance of the clusters, > 0.")
    ] = 10.0,
    learner: LearnerNames = ["soft"],  # noqa: B006  # typer copies it
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="CSV file: a line per point and branch; -lines.csv beside it."),
    ] = None,
    picture: Annotated[
        Path | None, typer.Option("--picture", "-p", help="Picture to draw (PNG, SVG or PDF by its suffix).")
    ] = None,
    beta: Beta = None,
    regularization: Regularization = None,
    as_json: AsJson = False,
) -> None:
    """Compute a phase diagram over (α, η): every branch at every point, and the lines between the phases.

    Prints the boundary lines: first-order transitions, spinodals, and loss of replica stability. With more
    than one learner, the learner's name is put before the suffix of every file.

    \b
    Examples:
      outlearn sweep --alphas 1:30:24:log --etas 0:8:0.25 -o diagram.csv --picture diagram.png
      outlearn sweep --learner bayes --gamma 4 --json
    """
    from outlearn import theory
    from outlearn.cli.learners import several
    from outlearn.exceptions import DataError, ParameterError
    from outlearn.numerics import Status

    alpha_values, eta_values = parse_range("alphas", alphas), parse_range("etas", etas)
    kinds = ("png", "svg", "pdf")
    if picture is not None and picture.suffix.lstrip(".") not in kinds:
        raise ParameterError("picture", str(picture), f"a name that ends in .{', .'.join(kinds)}")
    for path in (output, picture):
        if path is not None:
            check_writable(path)
    if output is not None and output.suffix.lower() != ".csv":
        raise DataError(f"{output}: the ending must be .csv")
    rules = several(learner, beta, regularization)
    documents, rows = [], []
    for name, rule in rules.items():
        with _progress(name) as progress:
            diagram = theory.phase_diagram(
                rule, gamma=gamma, alphas=alpha_values, etas=eta_values, progress=progress
            )
        lines = diagram.lines_to_frame()
        if output is not None:
            target = _named(output, name, rules)
            _write_table(diagram.to_frame(), target)
            _write_table(lines, target.with_stem(f"{target.stem}-lines"))
        if picture is not None:
            target = _named(picture, name, rules)
            _draw(diagram, target)
        failed = int((diagram.status != Status.CONVERGED).sum())
        if failed:
            say(
                f"outlearn: warning: {failed} of {diagram.status.size} points of {name} are not complete: "
                "see the column status"
            )
        documents.append(
            {
                "name": name,
                "learner": repr(rule),
                "gamma": gamma,
                "incomplete_points": failed,
                "points": None if output is not None else diagram.to_frame().to_dict(orient="records"),
                "lines": lines.to_dict(orient="records"),
            }
        )
        rows += [(name, *line) for line in lines.itertuples(index=False)]
    if as_json:
        print_json(documents)
    elif rows:
        print_table(
            ("learner", "line", "of", "alpha", "eta", "error of eta"), rows, title="lines between phases"
        )
    else:
        say("no line between phases in this range")


def parse_range(name: str, text: str) -> Any:
    """Read FROM:TO:STEP, both ends included, or FROM:TO:COUNT:log, spaced in ratio; or one number.

    >>> parse_range("alphas", "1:100:3:log").round(9).tolist(), parse_range("etas", "0:1:0.5").tolist()
    ([1.0, 10.0, 100.0], [0.0, 0.5, 1.0])
    """
    import numpy as np

    from outlearn.cli.simulate import values
    from outlearn.exceptions import ParameterError

    if not text.endswith(":log"):
        return np.array(values(name, [text]))
    try:
        start, stop, count = text.split(":")[:-1]
        first, last, number = float(start), float(stop), int(count)
    except ValueError:
        first = last = number = 0
    if not (0.0 < first < last < np.inf and number >= 2):
        raise ParameterError(name, text, "FROM:TO:COUNT:log with 0 < FROM < TO and COUNT >= 2")
    return np.geomspace(first, last, number)


def _named(path: Path, name: str, rules: dict[str, Any]) -> Path:
    return path if len(rules) == 1 else path.with_stem(f"{path.stem}-{name}")


def _write_table(frame: Any, path: Path) -> None:
    with atomic(path) as temporary:
        frame.to_csv(temporary, index=False)
    say(f"{len(frame)} lines in {path}")


def _draw(diagram: Any, path: Path) -> None:
    from outlearn.figures.diagram import draw_diagram

    with atomic(path) as temporary:
        draw_diagram(diagram).savefig(temporary, dpi=150)
    say(f"picture in {path}")


class _progress:
    """A bar on the screen, nothing in a pipe; called with the share that is done."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> Any:
        from rich.console import Console
        from rich.progress import Progress

        self._bar = Progress(console=Console(stderr=True), disable=not sys.stderr.isatty(), transient=True)
        self._bar.start()
        task = self._bar.add_task(self._name, total=1.0)
        return lambda share: self._bar.update(task, completed=share)

    def __exit__(self, *_: object) -> None:
        self._bar.stop()
