"""``python -m benchmarks [name ...]``: run ``benchmarks/bench_<name>.py`` and print their ratios."""

from __future__ import annotations

import importlib
import platform
import sys
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table


def main(names: list[str]) -> None:
    here = Path(__file__).parent
    known = sorted(p.stem.removeprefix("bench_") for p in here.glob("bench_*.py"))
    unknown = [name for name in names if name not in known]
    if unknown:
        sys.exit(f"no benchmark named {unknown[0]!r}; there are: {', '.join(known)}")
    console = Console(width=150)
    console.print(f"Python {platform.python_version()}, numpy {np.__version__}, {platform.machine()}")
    for name in names or known:
        table = Table(title=name, title_justify="left")
        for column in ("what", "ratio", "aim", "detail"):
            table.add_column(column, justify="right" if column == "ratio" else "left")
        for row in importlib.import_module(f"benchmarks.bench_{name}").rows():
            table.add_row(row.what, f"{row.ratio:.3g}", row.aim, row.detail)
        console.print(table)


if __name__ == "__main__":
    main(sys.argv[1:])
