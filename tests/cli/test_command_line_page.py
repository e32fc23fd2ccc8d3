"""Every command on the documentation's page runs, with the exit code and the message that the page shows."""

from __future__ import annotations

import io
import re
import shlex
import sys
from pathlib import Path

from outlearn.cli import main

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "command-line.md"


def test_the_page_runs_from_top_to_bottom(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    n_commands = 0
    for language, block in re.findall(r"^```(\w+)\n(.*?)^```$", PAGE.read_text(), flags=re.M | re.S):
        if language == "python":
            exec(compile(block, str(PAGE), "exec"), {})
        if language != "console":
            continue
        for command, shown in re.findall(r"^\$ outlearn (.*)\n((?:(?!\$ ).*\n)*)", block, flags=re.M):
            code, expected = _run(command, monkeypatch)
            out, err = capsys.readouterr()
            assert code == expected, f"{command}: {err}"
            assert shown == "" or shown == err
            assert code or out or err
            n_commands += 1
    assert n_commands >= 8
    for name in ("model", "predictions.csv", "diagram.csv", "diagram.png"):
        assert (tmp_path / name).stat().st_size > 100, name


def _run(command, monkeypatch):
    command, _, comment = command.partition("#")
    expected = int(comment.removeprefix(" exit code ") or 0)
    command, _, stdin = command.partition("<")
    if stdin:
        content = Path(stdin.strip()).read_bytes()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    return main(shlex.split(command)), expected
