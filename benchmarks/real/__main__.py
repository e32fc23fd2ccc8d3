"""``python -m benchmarks.real [--quick] [--sets ...]``: real data, contaminated; ours and the rivals."""

from __future__ import annotations

import argparse
import sys

from rich.console import Console
from rich.progress import track

from benchmarks.real import contamination, sets, tables
from benchmarks.real.cells import Cell, Outcome, Store, load, outcomes
from benchmarks.real.methods import OURS, methods

RATES = (0.0, 0.2, 0.5, 0.8)
QUICK = {"sets": ["breast_cancer", "digits_3v8", "wine_0v1"], "rates": [0.0, 0.5, 0.8], "seeds": 2}


def main() -> None:
    options = _parse()
    console = Console(width=None if sys.stdout.isatty() else 200)
    names = options.sets or (QUICK["sets"] if options.quick else list(sets.SETS))
    rates = options.rates or (QUICK["rates"] if options.quick else RATES)
    seeds = options.seeds or (QUICK["seeds"] if options.quick else 10)
    known = methods()
    chosen = options.methods or list(known)
    for name in set(OURS.values()) - set(known):
        console.print(f"skipped: method {name} is not in this version of outlearn")
    cells = []
    for name in names:
        try:
            data = load(name)
        except sets.Unavailable as reason:
            console.print(f"skipped: {name}: {reason}")
            continue
        cells += [
            Cell(set=name, kind=kind, rate=float(rate), seed=seed, method=method)
            for seed in range(options.first_seed, options.first_seed + seeds)
            for kind in options.kinds or contamination.KINDS
            for rate in rates
            for method in chosen
            if contamination.possible(data, kind, rate)
        ]
    if not cells:
        sys.exit("nothing to run")
    cells.sort(key=lambda cell: cell.seed)  # an interrupted run has whole seeds
    store = Store(sets.cache_directory() / "outcomes.jsonl")
    if options.stored:
        found = [outcome for cell in cells if (outcome := store.newest(cell)) is not None]
        _show(found, options, console)
        return
    found = list(
        track(
            outcomes(cells, store, options.jobs),
            total=len(cells),
            description="cells",
            console=Console(stderr=True),
            disable=not sys.stderr.isatty(),
        )
    )
    _show(found, options, console)


def _show(found: list[Outcome], options: argparse.Namespace, console: Console) -> None:
    if not found:
        sys.exit("nothing is stored of this")
    frame = tables.frame(found)
    tables.show(frame, console)
    if options.write:
        tables.write(frame, options.write)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.real", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="three sets, three rates, two seeds")
    parser.add_argument(
        "--sets", nargs="+", choices=list(sets.SETS), metavar="SET", help=", ".join(sets.SETS)
    )
    parser.add_argument("--kinds", nargs="+", choices=list(contamination.KINDS))
    parser.add_argument("--rates", nargs="+", type=float)
    parser.add_argument("--methods", nargs="+", choices=list(methods()))
    parser.add_argument("--seeds", type=int, help="number of seeds (default 10)")
    parser.add_argument("--first-seed", type=int, default=0, help="first of them (default 0)")
    parser.add_argument("--jobs", type=int, default=-1, help="processes (default: one per core)")
    parser.add_argument(
        "--stored",
        action="store_true",
        help="run nothing: show the newest results that are kept, of whatever code",
    )
    parser.add_argument("--write", metavar="PAGE", help="put the tables into a page between its markers")
    return parser.parse_args()


if __name__ == "__main__":
    main()
