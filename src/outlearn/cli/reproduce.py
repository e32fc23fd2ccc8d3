"""``outlearn reproduce``: the figures of the paper and ours, and the page about them."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from outlearn.cli.options import AsJson
from outlearn.cli.output import check_writable, print_json, print_table, say

__all__ = ["reproduce"]


def reproduce(
    figure: Annotated[
        list[str],
        typer.Argument(
            metavar="FIGURE...", help="all, 1 to 10, large (matrix-free runs), or page (the page about them)."
        ),
    ],
    quick: Annotated[
        bool, typer.Option("--quick", help="Smaller N, fewer runs, coarser grids: minutes, not hours.")
    ] = False,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Folder for pictures and tables; keeps the runs too.")
    ] = Path("out/reproduction"),
    workers: Annotated[
        int | None, typer.Option("--workers", "-w", help="Processes; every core when left out.", min=1)
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of all runs.", min=0)] = 0,
    page: Annotated[
        Path | None,
        typer.Option(help="Where FIGURE page writes the page; reproduction.md in --out when left out."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Rebuild the figures of the paper, and ours, with theory and runs.

    Each figure is written as PNG, SVG, CSV (all that is drawn) and JSON (what it shows). Runs are kept in
    runs.sqlite in the output folder: interrupt at will, run the same command again, and it goes on.

    \b
    Examples:
      outlearn reproduce all --quick
      outlearn reproduce 4 --out figures
      outlearn reproduce page --page docs/reproduction.md
    """
    from outlearn.exceptions import DataError, ParameterError
    from outlearn.figures.plate import Setting
    from outlearn.figures.reproduce import PLATES, make, names

    wanted = [name for name in figure if name != "page"]
    unknown = next((name for name in wanted if name not in ("all", *PLATES)), None)
    if unknown is not None:
        raise ParameterError("figure", unknown, f"all, page, {', '.join(PLATES)}")
    if page is not None:
        if "page" not in figure:
            raise ParameterError("page", str(page), "FIGURE page among the figures, to say that it is wanted")
        check_writable(page)
        if page.suffix.lower() != ".md":
            raise DataError(f"{page}: the ending must be .md")
    rows: list[dict[str, Any]] = []
    if wanted:
        total = len(names(wanted))

        def started(name: str) -> None:
            say(f"{len(rows) + 1}/{total}: {'matrix-free runs' if name == 'large' else f'figure {name}'} ...")

        def finished(plate: Any, seconds: float, paths: list[Path]) -> None:
            rows.append(
                {
                    "name": plate.name,
                    "title": plate.title,
                    "seconds": round(seconds, 1),
                    "files": [str(path) for path in paths],
                    "findings": list(plate.findings),
                }
            )

        try:
            with _progress() as progress:
                setting = Setting(
                    size="quick" if quick else "full", seed=seed, workers=workers, progress=progress
                )
                make(wanted, setting, out, started=started, finished=finished)
        except KeyboardInterrupt:
            say(f"what is done is kept in {out}; run the same command again to go on")
            raise
    if "page" in figure:
        from outlearn.figures.page import write_page

        rows.append(
            {
                "name": "page",
                "title": "",
                "files": [str(write_page(out, page or out / "reproduction.md"))],
                "findings": [],
            }
        )
    if as_json:
        print_json(rows)
        return
    for row in rows:
        if row["findings"]:
            print_table([f"{row['name']}: {row['title']}"], [[line] for line in row["findings"]])
    print_table(
        ("name", "seconds", "files"),
        [(row["name"], row.get("seconds"), ", ".join(row["files"])) for row in rows],
    )


@contextlib.contextmanager
def _progress() -> Iterator[Callable[[Any], None] | None]:
    """Show how many runs of a figure are done: a line on a screen, nothing in a file."""
    if not sys.stderr.isatty():
        yield None
        return
    from outlearn.simulation import text_progress

    show: Callable[[Any], None] | None = None

    def fresh(now: Any) -> None:
        nonlocal show
        show = show or text_progress()
        show(now)
        if now.done >= now.total:
            show = None

    yield fresh
