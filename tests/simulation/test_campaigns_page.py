"""The page on campaigns runs from top to bottom."""

import re
import shlex
from pathlib import Path

from outlearn.cli import main

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "campaigns.md"


def test_every_block_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names, n_blocks, n_commands = {}, 0, 0
    for language, block in re.findall(r"^```(\w+)\n(.*?)^```$", PAGE.read_text(), flags=re.M | re.S):
        if language == "python":
            exec(compile(block, str(PAGE), "exec"), names)
            n_blocks += 1
        else:
            for command in re.findall(r"^\$ outlearn (.*)$", block, flags=re.M):
                assert main(shlex.split(command)) == 0, capsys.readouterr().err
                n_commands += 1
    assert (n_blocks, n_commands) == (6, 6)
    for name in ("runs.csv", "campaign.csv"):
        assert (tmp_path / name).stat().st_size > 1000
