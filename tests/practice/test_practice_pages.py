"""The blocks of code in the pages about the practice room run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGES = Path(__file__).parents[2] / "docs" / "howto"


@pytest.mark.parametrize("page", ["diagnose", "plan", "report"])
def test_the_code_runs(page, capsys):
    blocks = re.findall(r"```python\n(.*?)```", (PAGES / f"{page}.md").read_text(encoding="utf-8"), re.S)
    assert blocks
    for block in blocks:
        exec(compile(block, page, "exec"), {})
    printed = capsys.readouterr().out
    expected = {
        "diagnose": "80 % of the examples are garbage",
        "plan": "The Bayes learner needs 239",
        "report": "<!doctype html>",
    }
    assert expected[page] in printed
