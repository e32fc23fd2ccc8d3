"""Outputs appear whole or not at all, and JSON is strict."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

from outlearn.cli.output import atomic, check_writable, plain, print_json, print_table
from outlearn.exceptions import DataError, ParameterError
from outlearn.model import Ensemble


def test_a_file_appears_when_it_is_complete(tmp_path):
    target = tmp_path / "out.csv"
    with atomic(target) as temporary:
        temporary.write_text("whole")
        assert not target.exists()
        assert temporary.suffix == ".csv"
    assert target.read_text() == "whole"
    assert list(tmp_path.iterdir()) == [target]


def test_a_failure_leaves_the_old_file_and_no_other(tmp_path):
    target = tmp_path / "out.csv"
    target.write_text("old")

    def fail_halfway():
        with atomic(target) as temporary:
            temporary.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail_halfway()
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_permissions_are_those_of_any_new_file(tmp_path):
    other = tmp_path / "other"
    other.write_text("")
    with atomic(tmp_path / "out") as temporary:
        temporary.write_text("x")
    assert (tmp_path / "out").stat().st_mode == other.stat().st_mode


def test_places_that_cannot_be_written_are_refused_at_once(tmp_path, monkeypatch):
    with pytest.raises(DataError, match="is a directory"):
        check_writable(tmp_path)
    with pytest.raises(DataError, match="there is no directory"):
        check_writable(tmp_path / "nowhere" / "x")
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(DataError, match="not writable"):
        check_writable(tmp_path / "x")
    check_dot = Path("x")  # the folder is "."
    with pytest.raises(DataError, match="not writable"):
        check_writable(check_dot)


def test_json_is_strict_and_keeps_numbers(capsys):
    print_json(
        {
            "nan": np.float64("nan"),
            "inf": -np.inf,
            "array": np.arange(3),
            "ensemble": Ensemble(eta=-np.inf, gamma=10.0),
            "path": Path("a/b"),
            "flag": np.bool_(True),
            "third": 1 / 3,
        }
    )
    found = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert found["nan"] is None
    assert found["inf"] == "-inf"
    assert found["array"] == [0, 1, 2]
    assert found["ensemble"]["eta"] == "-inf"
    assert found["path"] == "a/b"
    assert found["flag"] is True
    assert found["third"] == 1 / 3
    assert plain((1, None)) == [1, None]


def test_tables_say_yes_no_and_nothing(capsys):
    print_table(("a", "b", "c", "d"), [(True, None, 1 / 3, "[x]"), (False, 2, 3.0, "y")], title="t")
    out = capsys.readouterr().out
    for text in ("yes", "no", "-", "0.333333", "[x]"):
        assert text in out


def test_options_read_numbers_and_auto():
    from outlearn.cli.options import number_or_auto

    with pytest.raises(ParameterError, match="a number, or auto"):
        number_or_auto("contamination", "half")
