"""Read labelled tables (CSV, Parquet, NPZ; files, standard input); every complaint says what and where."""

from __future__ import annotations

import codecs
import csv
import difflib
import gzip
import io
import os
import re
import sys
import warnings
import zipfile
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from outlearn.exceptions import DataError

__all__ = ["Table", "read_table"]

_SEPARATORS = (",", ";", "\t")
_DECIMAL_COMMA = re.compile(r"\s*[+-]?\d+,\d+([eE][+-]?\d+)?\s*")
_MOST_NAMES = 12  # listed in a message
_LARGEST = 1e150  # its square is a number still
_MOST_CLASSES = 0.5  # a label with more different values per example is a measurement, not a class


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Table:
    """Numbers with names, the labels if asked for, and what was left out and why.

    Attributes
    ----------
    X : DataFrame of shape (n_samples, n_features)
        Finite numbers; the index is the row in the file, from 1.
    y : array of shape (n_samples,) or None
        Labels: whole numbers or booleans where the column holds such, else text.
    label : str or None
        Name of the label's column.
    left_out : mapping of column name to reason
    dropped_rows : tuple of int
        Rows left out because values were missing.
    source : str
        The file, as messages call it.
    """

    X: pd.DataFrame
    y: NDArray[Any] | None
    label: str | None
    left_out: Mapping[str, str] = field(default_factory=dict)
    dropped_rows: tuple[int, ...] = ()
    source: str

    @property
    def notices(self) -> list[str]:
        """What the user should know was left out: one sentence per reason."""
        sentences = []
        for reason in dict.fromkeys(self.left_out.values()):
            names = [name for name, why in self.left_out.items() if why == reason]
            sentences.append(f"left out {_listed(names, 'column')}: {reason}")
        if self.dropped_rows:
            rows = [str(row) for row in self.dropped_rows]
            sentences.append(f"left out {_listed(rows, 'row', quote=False)}: missing values")
        return sentences

    def __repr__(self) -> str:
        classes = "" if self.y is None else f", classes={[_plain(c) for c in np.unique(self.y)]}"
        return f"Table({self.source!r}, n_samples={len(self.X)}, n_features={self.X.shape[1]}{classes})"


def read_table(
    source: str | os.PathLike[str],
    *,
    label: str | None = None,
    columns: Sequence[str] | None = None,
    drop_missing: bool = False,
    drop_constant: bool = False,
) -> Table:
    """Read a table whose numeric columns are the inputs and whose column ``label`` holds the classes.

    Parameters
    ----------
    source : path, or ``"-"`` for standard input
        CSV (separated by commas, semicolons or tabs, with a header line), Parquet (columns of fixed-size
        lists become one column per item), or NPZ (two-dimensional arrays are inputs, one-dimensional ones
        columns; ``feature_names`` names the columns of ``X``); gzip around any of them is taken off. The
        content decides which, not the name.
    label : str, optional
        Column of the classes; without it every numeric column is an input.
    columns : sequence of str, optional
        The inputs wanted, in this order, and no others (those a model was fitted on).
    drop_missing, drop_constant : bool
        Leave out rows with missing values, columns with one value; otherwise missing values are refused.

    Examples
    --------
    >>> import io, sys
    >>> sys.stdin = io.TextIOWrapper(io.BytesIO(b"a,b,name,y\\n1,2,x,yes\\n3,4.5,y,no\\n"))
    >>> table = read_table("-", label="y")
    >>> table, table.notices
    (Table('standard input', n_samples=2, n_features=2, classes=['no', 'yes']),
     ["left out column 'name': not numeric"])
    >>> sys.stdin = sys.__stdin__
    """
    name, content = _content(source)
    if content.startswith(b"\x1f\x8b"):
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error) as error:
            raise DataError(f"{name}: damaged or truncated gzip file: {error}") from None
    if not content.strip():
        raise DataError(f"{name}: the file is empty")
    if content.startswith(b"PAR1"):
        frame = _from_parquet(name, content)
    elif content.startswith(b"PK"):
        frame = _from_npz(name, content)
    else:
        frame = _from_csv(name, content)
    if not len(frame):
        raise DataError(f"{name}: there are column names but no rows")
    frame.columns = [str(column) for column in frame.columns]
    _refuse_repeated(list(frame), name)
    frame.index = pd.RangeIndex(1, len(frame) + 1, name="row")

    if label is not None and label not in frame:
        raise DataError(f"{name}: {_no_column(label, frame)}")
    unnamed = [column for column in frame if not column.strip() or column.startswith("__index_level_")]
    hollow = [column for column in frame if column not in (label, *unnamed) and frame[column].isna().all()]
    wanted = [column for column in frame if column not in {label, *unnamed, *hollow}]
    inputs = wanted if columns is None else list(columns)
    for column in inputs:
        if column not in frame:
            raise DataError(f"{name}: {_no_column(column, frame)} (the model needs it)")
    X, text = _inputs(frame[inputs], name)
    if text and columns is not None:
        raise DataError(f"{name}: {_listed(text, 'column')} must be numeric (the model needs it)")
    left_out = dict.fromkeys(text, "not numeric")
    if columns is None:
        left_out |= dict.fromkeys(hollow, "no value in any row")
        left_out |= dict.fromkeys(unnamed, "no name, so it is taken for the row's number")
    labels = None if label is None else frame[label]

    missing = X.isna().any(axis=1)
    if labels is not None:
        missing |= labels.isna()
    dropped: tuple[int, ...] = ()
    if missing.any():
        if not drop_missing:
            raise DataError(f"{name}: {_missing(X, labels, content)}")
        dropped = tuple(int(row) for row in X.index[missing])
        X, labels = X[~missing], None if labels is None else labels[~missing]
        if not len(X):
            raise DataError(f"{name}: every row has a missing value")
    _refuse_infinite(X, name)
    y = None if labels is None else _classes(labels, name, to_learn=columns is None)
    if drop_constant:
        values = X.to_numpy()
        constant = list(X.columns[(values[:1] == values).all(axis=0)])
        left_out |= dict.fromkeys(constant, "the same value in every row")
        X = X.drop(columns=constant)
    if not X.shape[1]:
        raise DataError(f"{name}: no numeric column to learn from; the columns are {_listed(list(frame))}")
    return Table(X=X, y=y, label=label, left_out=left_out, dropped_rows=dropped, source=name)


def _content(source: str | os.PathLike[str]) -> tuple[str, bytes]:
    if os.fspath(source) == "-":
        return "standard input", sys.stdin.buffer.read()
    return os.fspath(source), Path(source).read_bytes()


# ---------------------------------------------------------------- formats


def _from_csv(name: str, content: bytes) -> pd.DataFrame:
    wide = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        text = content.decode("utf-16" if wide else "utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise DataError(
            f"{name}: neither Parquet nor NPZ, and not UTF-8 text (line {line}, byte {error.start}); "
            "if it is text, save it as UTF-8"
        ) from None
    if "\0" in text:
        raise DataError(f"{name}: neither Parquet nor NPZ, and not text (it holds zero bytes)")
    first = text.lstrip().splitlines()[0]
    separator, cells = max(
        ((s, next(csv.reader([first], delimiter=s))) for s in _SEPARATORS), key=lambda found: len(found[1])
    )
    header = [cell.strip() for cell in cells]
    if all(_is_number(cell) for cell in header):
        raise DataError(f"{name}: the first line holds numbers; a line with the columns' names is needed")
    _refuse_repeated(header, name)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)  # more fields than names: else cut off
            return pd.read_csv(
                io.StringIO(text),
                sep=separator,
                skipinitialspace=True,
                index_col=False,
                names=header,
                header=0,
            )
    except pd.errors.ParserWarning:
        raise DataError(f"{name}: the lines have more fields than the header has names") from None
    except pd.errors.ParserError as error:
        ragged = re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", str(error))
        if ragged:
            expected, at_line, found = ragged.groups()
            raise DataError(f"{name}: line {at_line} has {found} fields, the header has {expected}") from None
        raise DataError(f"{name}: not readable as CSV: {error}") from None


def _from_parquet(name: str, content: bytes) -> pd.DataFrame:
    import pyarrow
    import pyarrow.parquet

    try:
        table = pyarrow.parquet.ParquetFile(io.BytesIO(content)).read()
    except (pyarrow.ArrowException, OSError) as error:
        raise DataError(f"{name}: damaged or truncated Parquet file: {str(error).splitlines()[0]}") from None
    _refuse_repeated(table.column_names, name)
    columns: dict[str, Any] = {}
    for column, values in zip(table.column_names, table.columns, strict=True):
        if pyarrow.types.is_fixed_size_list(values.type):
            size = values.type.list_size
            items = values.combine_chunks().flatten().to_numpy(zero_copy_only=False)
            columns |= {f"{column}{j}": items[j::size] for j in range(size)}
        else:
            columns[column] = values.to_pandas()
    return pd.DataFrame(columns)


def _from_npz(name: str, content: bytes) -> pd.DataFrame:
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            arrays = {key: archive[key] for key in archive.files}
        foreign = [key for key, array in arrays.items() if not isinstance(array, np.ndarray)]
        if foreign:
            raise ValueError(f"{foreign[0]!r} is no array")
    except (zipfile.BadZipFile, ValueError, EOFError, OSError, KeyError) as error:
        raise DataError(f"{name}: damaged or foreign NPZ file: {error}") from None
    names = arrays.pop("feature_names", None)
    lengths = {len(array) for array in arrays.values() if array.ndim in (1, 2)}
    if len(lengths) != 1:
        shapes = ", ".join(f"{key} {array.shape}" for key, array in arrays.items()) or "none"
        raise DataError(f"{name}: the arrays do not have one number of rows: {shapes}")
    parts = []
    for key, array in arrays.items():
        if array.ndim == 1:
            parts.append(pd.DataFrame({key: array}))
        elif array.ndim == 2:
            columns = [f"{key}{j}" for j in range(array.shape[1])]
            if key == "X" and names is not None and len(names) == array.shape[1]:
                columns = [str(column) for column in names]
            parts.append(pd.DataFrame(array, columns=columns, copy=False))
    return pd.concat(parts, axis=1)


# ---------------------------------------------------------------- columns


def _inputs(frame: pd.DataFrame, name: str) -> tuple[pd.DataFrame, list[str]]:
    """Return the numeric columns as floats (without a copy where they are), and the names of the others."""
    if len(set(frame.dtypes)) == 1 and frame.dtypes.iloc[0] in (np.float32, np.float64):
        return frame, []
    converted = {column: _numbers(frame[column], name) for column in frame}
    numbers = {column: values for column, values in converted.items() if values is not None}
    return pd.DataFrame(numbers, index=frame.index), [column for column in frame if column not in numbers]


def _numbers(values: pd.Series, name: str) -> Any:
    """Return a column as floats, or None if it is text; numbers with a word among them are refused."""
    if pd.api.types.is_bool_dtype(values.dtype):
        return values.astype(np.float64)
    if pd.api.types.is_numeric_dtype(values.dtype):
        if pd.api.types.is_complex_dtype(values.dtype):
            return None
        return values if values.dtype in (np.float32, np.float64) else values.astype(np.float64)
    if not (pd.api.types.is_object_dtype(values.dtype) or pd.api.types.is_string_dtype(values.dtype)):
        return None
    converted = pd.to_numeric(values, errors="coerce")
    given = values.notna()
    wrong = given & converted.isna()
    if not given.any():
        return converted.astype(np.float64)
    if wrong.sum() > given.sum() / 2:
        row = wrong.idxmax()
        if all(_DECIMAL_COMMA.fullmatch(str(value)) for value in values[wrong][:100]):
            raise DataError(
                f"{name}: column {values.name!r}, row {row}: {values[row]!r} is not a number; "
                "write decimals with a point"
            )
        return None
    if wrong.any():
        row = wrong.idxmax()
        raise DataError(f"{name}: column {values.name!r}, row {row}: {values[row]!r} is not a number")
    return converted.astype(np.float64)


def _classes(labels: pd.Series, name: str, *, to_learn: bool) -> NDArray[Any]:
    values = labels.to_numpy()
    if pd.api.types.is_bool_dtype(labels.dtype):
        values = values.astype(bool)
    elif pd.api.types.is_numeric_dtype(labels.dtype):
        values = values.astype(np.float64)
        whole = np.isfinite(values).all() and (values == np.round(values)).all()
        values = values.astype(np.int64) if whole else values.astype(str)
    else:
        values = np.array([str(value) for value in values])
    found = np.unique(values)
    if not to_learn:  # what a model says may be compared with labels of one class, or of one example
        return values
    if len(found) == 1:
        raise DataError(f"{name}: the label {labels.name!r} has one class only, {_plain(found[0])!r}")
    if len(found) > max(2, _MOST_CLASSES * len(values)):
        raise DataError(
            f"{name}: the label {labels.name!r} has {len(found)} different values in {len(values)} rows; "
            "that is no class label"
        )
    return values


def _missing(X: pd.DataFrame, labels: pd.Series | None, content: bytes) -> str:
    holes = X.isna()
    if labels is not None:
        holes = holes.assign(**{str(labels.name): labels.isna()})
    row = holes.any(axis=1).idxmax()
    column = holes.loc[row].idxmax()
    total = int(holes.to_numpy().sum())
    more = f" (and {total - 1} more in {int(holes.any(axis=0).sum())} columns)" if total > 1 else ""
    advice = "fill them, or leave such rows out with --drop-missing"
    if row == X.index[-1] and not content.endswith(b"\n") and not content.startswith((b"PAR1", b"PK")):
        return f"the last line, row {row}, ends before column {column!r}: the file seems cut off"
    return f"column {column!r}, row {row}: the value is missing{more}; {advice}"


def _refuse_repeated(names: Sequence[str], name: str) -> None:
    twice = sorted(column for column, count in Counter(names).items() if count > 1)
    if twice:
        raise DataError(f"{name}: the header names {_listed(twice)} more than once")


def _refuse_infinite(X: pd.DataFrame, name: str) -> None:
    values = X.to_numpy()
    largest = min(_LARGEST, float(np.finfo(values.dtype).max))
    beyond = (values > largest) | (values < -largest)
    if beyond.any():
        row, column = np.argwhere(beyond)[0]
        what = "is infinite" if np.isinf(values[row, column]) else "is too large to square"
        raise DataError(f"{name}: column {X.columns[column]!r}, row {X.index[row]}: the value {what}")


def _no_column(column: str, frame: pd.DataFrame) -> str:
    names = [str(name) for name in frame.columns]
    folded = {name.casefold(): name for name in names}
    close = difflib.get_close_matches(column.casefold(), folded, n=1)
    hint = f"; did you mean {folded[close[0]]!r}?" if close else ""
    return f"there is no column {column!r}; the columns are {_listed(names)}{hint}"


def _listed(names: Sequence[str], noun: str = "", quote: bool = True) -> str:
    shown = [repr(name) if quote else name for name in names[:_MOST_NAMES]]
    rest = len(names) - len(shown)
    text = ", ".join(shown) + (f" and {rest} more" if rest else "")
    return f"{noun}{'s' if len(names) > 1 else ''} {text}" if noun else text


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value
