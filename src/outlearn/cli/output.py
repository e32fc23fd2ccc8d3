"""What commands print and write: tables for people, JSON for programs, files that appear whole or not."""

from __future__ import annotations

import contextlib
import json
import math
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from outlearn.exceptions import DataError

__all__ = ["about", "atomic", "check_writable", "console", "plain", "print_json", "print_table", "say"]

_PIPE_WIDTH = 200  # a table that is not shown on a screen has no reason to wrap


def console() -> Console:
    """Return a console for stdout, as wide as the screen, or wide enough for a file."""
    return Console(width=None if sys.stdout.isatty() else _PIPE_WIDTH, highlight=False, markup=False)


@contextlib.contextmanager
def about(source: str) -> Iterator[None]:
    """Name the source of data that cannot be used."""
    try:
        yield
    except DataError as error:
        raise DataError(f"{source}: {error}") from None


def say(message: str) -> None:
    """Tell the user something on stderr, so that stdout stays what was asked for."""
    print(message, file=sys.stderr)


def print_table(
    columns: Sequence[str], rows: Sequence[Sequence[Any]], title: str | None = None, digits: int = 6
) -> None:
    """Print a table; numbers are set to the right with the digits that matter."""
    table = Table()
    for k, column in enumerate(columns):
        numeric = all(isinstance(row[k], int | float) for row in rows)
        table.add_column(column, justify="right" if numeric else "left")
    for row in rows:
        table.add_row(*(_cell(value, digits) for value in row))
    screen = console()
    if title is not None:  # above the table, not in it: a title wider than the table would be broken
        screen.print(title, style="bold")
    screen.print(table)


def _cell(value: Any, digits: int) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.{digits}g}"
    return str(value)


def plain(value: Any) -> Any:
    """Turn a result into what strict JSON can hold: NaN becomes null, infinities "inf", "-inf".

    >>> plain({"R": float("nan"), "eta": [float("-inf"), 1.5]})
    {'R': None, 'eta': ['-inf', 1.5]}
    """
    if hasattr(value, "to_dict"):
        value = value.to_dict()
    if hasattr(value, "tolist"):  # numpy arrays and scalars
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    if isinstance(value, float):
        if math.isnan(value):
            return None
        return value if math.isfinite(value) else str(value)
    if value is None or isinstance(value, bool | int | str):
        return value
    return str(value)


def print_json(value: Any) -> None:
    """Print a result as one JSON document."""
    print(json.dumps(plain(value), indent=2, ensure_ascii=False, allow_nan=False))


def check_writable(path: Path) -> None:
    """Refuse a place that cannot be written to before hours are spent on what should go there."""
    folder = path.parent
    if path.is_dir():
        raise DataError(f"{path}: is a directory, not a file to write to")
    if not folder.is_dir():
        raise DataError(f"{path}: there is no directory {folder}")
    if not os.access(folder, os.W_OK):
        raise DataError(f"{path}: {folder} is not writable")


@contextlib.contextmanager
def atomic(path: Path) -> Iterator[Path]:
    """Give a temporary path beside ``path`` that takes its place if the block ends well, else vanishes."""
    check_writable(path)
    handle, name = tempfile.mkstemp(prefix=f".{path.stem}-", suffix=path.suffix, dir=path.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
