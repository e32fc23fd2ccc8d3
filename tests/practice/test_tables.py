"""Tables are read as they are, or refused with what is wrong and where."""

from __future__ import annotations

import gzip
import io
import sys
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from outlearn.exceptions import DataError
from outlearn.practice.tables import read_table


@pytest.fixture
def write(tmp_path):
    def to_file(content: str | bytes, name: str = "data.csv") -> Path:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return to_file


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(20, 3)), columns=["a", "b", "c"])
    table["name"] = [f"row {k}" for k in range(20)]
    table["y"] = np.where(np.arange(20) % 3 == 0, "good", "bad")
    return table


def as_csv(frame, path):
    frame.to_csv(path, index=False)


def as_semicolons(frame, path):
    frame.to_csv(path, index=False, sep=";")


def as_tabs_with_byte_order_mark(frame, path):
    frame.to_csv(path, index=False, sep="\t", encoding="utf-8-sig")


def as_parquet(frame, path):
    frame.to_parquet(path)


def as_npz(frame, path):
    with path.open("wb") as file:
        np.savez(
            file,
            X=frame[["a", "b", "c"]].to_numpy(),
            feature_names=["a", "b", "c"],
            name=frame["name"].to_numpy(dtype=str),
            y=frame["y"].to_numpy(dtype=str),
        )


WRITERS = (as_csv, as_semicolons, as_tabs_with_byte_order_mark, as_parquet, as_npz)


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("from_stdin", [False, True])
def test_every_format_gives_the_same_table(frame, writer, from_stdin, tmp_path, monkeypatch):
    path = tmp_path / "data.anything"  # the content decides, not the name
    writer(frame, path)
    if from_stdin:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(path.read_bytes())))
    table = read_table("-" if from_stdin else path, label="y")
    np.testing.assert_allclose(table.X.to_numpy(), frame[["a", "b", "c"]].to_numpy(), rtol=1e-15)
    assert list(table.X.columns) == ["a", "b", "c"]
    assert list(table.y) == list(frame["y"])
    assert table.left_out == {"name": "not numeric"}
    assert table.notices == ["left out column 'name': not numeric"]
    assert table.X.index[0] == 1


def test_without_a_label_every_numeric_column_is_an_input(frame, tmp_path):
    frame["y"] = np.arange(20)
    as_csv(frame, tmp_path / "data.csv")
    table = read_table(tmp_path / "data.csv")
    assert list(table.X.columns) == ["a", "b", "c", "y"]
    assert table.y is None


def test_wanted_columns_come_in_the_order_asked_for(frame, tmp_path):
    as_csv(frame, tmp_path / "data.csv")
    table = read_table(tmp_path / "data.csv", columns=["c", "a"])
    assert list(table.X.columns) == ["c", "a"]


def test_single_precision_stays_single(tmp_path):
    with (tmp_path / "x.npz").open("wb") as file:
        np.savez(file, X=np.ones((4, 2), np.float32), y=np.array([0, 1, 0, 1]))
    assert set(read_table(tmp_path / "x.npz", label="y").X.dtypes) == {np.dtype(np.float32)}


def test_parquet_lists_become_columns(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    values = np.arange(12.0)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(values), 3)
    pq.write_table(pa.table({"x": vectors, "y": [1, 2, 1, 2]}), tmp_path / "x.parquet")
    table = read_table(tmp_path / "x.parquet", label="y")
    np.testing.assert_array_equal(table.X.to_numpy(), values.reshape(4, 3))
    assert list(table.X.columns) == ["x0", "x1", "x2"]


@pytest.mark.parametrize(
    ("text", "expected", "kind"),
    [
        ("a,y\n1,0\n2,1\n", [0, 1], "i"),
        ("a,y\n1,-1.0\n2,1.0\n", [-1, 1], "i"),
        ("a,y\n1,true\n2,false\n", [True, False], "b"),
        ("a,y\n1,yes\n2,no\n", ["yes", "no"], "U"),
        ("a,y\n1,0.5\n2,1.5\n3,1.5\n4,0.5\n", ["0.5", "1.5", "1.5", "0.5"], "U"),
    ],
)
def test_labels_keep_their_kind(write, text, expected, kind):
    y = read_table(write(text), label="y").y
    assert y.dtype.kind == kind
    assert list(y) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        (" \n\n", "the file is empty"),
        ("a,b,y\n", "there are column names but no rows"),
        ("a,b,y\n1,2,x\n1,3\n4,5,z\n", "column 'y', row 2: the value is missing; fill them"),
        ("a,b,y\n1,,x\n1,3,z\n,4,z\n", "column 'b', row 1: the value is missing (and 1 more in 2 columns)"),
        ("a,b,y\n1,2,x\n1,3,z\n1,", "the last line, row 3, ends before column 'b': the file seems cut off"),
        ("a,b,y\n1,2,x\n1,3,z,4\n", "line 3 has 4 fields, the header has 3"),
        ("a,b,y\n1,2,x,5\n1,3,z,4\n", "the lines have more fields than the header has names"),
        ("a,b,Y\n1,2,x\n1,3,z\n", "there is no column 'y'; the columns are 'a', 'b', 'Y'; did you mean 'Y'?"),
        ("a,b,y\n1,2,x\n1,3,x\n", "the label 'y' has one class only, 'x'"),
        ("a,y\n1,1.5\n2,2.5\n3,4.4\n4,1.1\n", "the label 'y' has 4 different values in 4 rows"),
        ("a,b,y\n1,inf,x\n1,3,z\n", "column 'b', row 1: the value is infinite"),
        ("a,b,y\n1,2,x\n1,-3e200,z\n", "column 'b', row 2: the value is too large to square"),
        ("a,b,y\n1,2,x\n", "the label 'y' has one class only, 'x'"),
        ("a,b,y\n1,2,x\n1,3,z\n2,oops,z\n", "column 'b', row 3: 'oops' is not a number"),
        ("1,2,3\n4,5,6\n", "the first line holds numbers; a line with the columns' names is needed"),
        ("a,a,y\n1,2,x\n1,3,z\n", "the header names 'a' more than once"),
        ("a;y\n1,5;x\n-2,5;z\n", "column 'a', row 1: '1,5' is not a number; write decimals with a point"),
        ("a,y\nfoo,x\nbar,z\n", "no numeric column to learn from; the columns are 'a', 'y'"),
        (b"a,b\n1,\xff\n", "neither Parquet nor NPZ, and not UTF-8 text (line 2, byte 6)"),
        (b"a,b\n1,\0\n", "neither Parquet nor NPZ, and not text"),
        (b"PAR1 and no more", "damaged or truncated Parquet file"),
        (b"PK\x03\x04 and no more", "damaged or foreign NPZ file"),
    ],
)
def test_what_cannot_be_used_is_refused_with_the_place(write, text, message):
    path = write(text)
    with pytest.raises(DataError) as caught:
        read_table(path, label="y")
    assert str(caught.value).startswith(f"{path}: ")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("writer", [as_parquet, as_npz])
@pytest.mark.parametrize("share", [0.2, 0.6, 0.95])
def test_truncated_binary_files_are_refused(frame, writer, share, tmp_path):
    path = tmp_path / "data"
    writer(frame, path)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(DataError, match="damaged"):
        read_table(path, label="y")


def test_pickled_arrays_are_not_opened(tmp_path):
    with (tmp_path / "x.npz").open("wb") as file:
        np.savez(file, X=np.array([[{}]], dtype=object), allow_pickle=True)
    with pytest.raises(DataError, match="allow_pickle"):
        read_table(tmp_path / "x.npz")


def test_arrays_of_different_length_are_named(tmp_path):
    with (tmp_path / "x.npz").open("wb") as file:
        np.savez(file, X=np.ones((4, 2)), y=np.arange(3))
    with pytest.raises(DataError, match=r"one number of rows: X \(4, 2\), y \(3,\)"):
        read_table(tmp_path / "x.npz", label="y")


def test_columns_of_one_name_are_refused_in_every_format(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table([[1, 2], [3, 4], [0, 1]], names=["a", "a", "y"]), tmp_path / "x.parquet")
    with (tmp_path / "x.npz").open("wb") as file:
        np.savez(file, X=np.eye(2), a=np.arange(2.0), y=np.arange(2), feature_names=["a", "b"])
    for source in ("x.parquet", "x.npz"):
        with pytest.raises(DataError, match="names 'a' more than once"):
            read_table(tmp_path / source, label="y")


def test_infinite_single_precision_is_refused(tmp_path):
    with (tmp_path / "x.npz").open("wb") as file:
        np.savez(file, X=np.array([[1.0], [np.inf]], dtype=np.float32), y=np.arange(2))
    with pytest.raises(DataError, match="column 'X0', row 2: the value is infinite"):
        read_table(tmp_path / "x.npz", label="y")


def test_a_model_may_be_tried_on_labels_of_one_class(write):
    assert list(read_table(write("a,y\n1,x\n2,x\n"), label="y", columns=["a"]).y) == ["x", "x"]


def test_a_missing_file_is_the_systems_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_table(tmp_path / "nowhere.csv")


def test_rows_and_columns_are_left_out_when_asked_and_named(write):
    path = write("a,b,same,y\n1,2,7,x\n,3,7,z\n4,5,7,z\n6,7,7,\n0,1,7,x\n")
    table = read_table(path, label="y", drop_missing=True, drop_constant=True)
    assert list(table.X.index) == [1, 3, 5]
    assert table.dropped_rows == (2, 4)
    assert list(table.X.columns) == ["a", "b"]
    assert table.notices == [
        "left out column 'same': the same value in every row",
        "left out rows 2, 4: missing values",
    ]


def test_nothing_left_is_said(write):
    with pytest.raises(DataError, match="every row has a missing value"):
        read_table(write("a,b\n,1\n2,\n"), drop_missing=True)
    with pytest.raises(DataError, match="no numeric column"):
        read_table(write("a,y\n1,x\n1,z\n"), label="y", drop_constant=True)


def test_columns_a_model_needs_are_named(write):
    path = write("a,b,y\n1,2,x\n1,3,z\n")
    with pytest.raises(DataError, match=r"no column 'c'.*the model needs it"):
        read_table(path, columns=["a", "c"])
    with pytest.raises(DataError, match=r"column 'y' must be numeric"):
        read_table(path, columns=["a", "y"])


def test_an_index_that_pandas_wrote_is_no_input(frame, tmp_path):
    frame.to_csv(tmp_path / "data.csv")
    table = read_table(tmp_path / "data.csv", label="y")
    assert list(table.X.columns) == ["a", "b", "c"]
    assert table.left_out[""] == "no name, so it is taken for the row's number"


def test_windows_line_ends_and_quotes_are_read(write):
    table = read_table(write('"a, b";y\r\n1;"x"\r\n2;z\r\n'), label="y")
    assert list(table.X.columns) == ["a, b"]
    assert list(table.y) == ["x", "z"]


def test_gzip_is_taken_off_and_missed_when_it_is_cut(frame, tmp_path):
    as_csv(frame, tmp_path / "data.csv")
    packed = gzip.compress((tmp_path / "data.csv").read_bytes())
    (tmp_path / "data.csv.gz").write_bytes(packed)
    (tmp_path / "cut.csv.gz").write_bytes(packed[: len(packed) // 2])
    assert len(read_table(tmp_path / "data.csv.gz", label="y").X) == 20
    with pytest.raises(DataError, match="truncated gzip"):
        read_table(tmp_path / "cut.csv.gz", label="y")


def test_what_spreadsheets_call_unicode_text_is_read(frame, tmp_path):
    frame.to_csv(tmp_path / "data.txt", index=False, sep="\t", encoding="utf-16")
    assert list(read_table(tmp_path / "data.txt", label="y").X.columns) == ["a", "b", "c"]


def test_a_column_without_any_value_is_left_out(write):
    table = read_table(write("a,empty,y\n1,,x\n2,,z\n"), label="y")
    assert list(table.X.columns) == ["a"]
    assert table.notices == ["left out column 'empty': no value in any row"]


def test_an_archive_of_something_else_is_no_npz(tmp_path):
    with zipfile.ZipFile(tmp_path / "data.zip", "w") as archive:
        archive.writestr("data.csv", "a,y\n1,x\n2,z\n")
    with pytest.raises(DataError, match=r"foreign NPZ file: 'data.csv' is no array"):
        read_table(tmp_path / "data.zip", label="y")
