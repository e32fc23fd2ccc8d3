"""The blocks of code in the pages about the practice room run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGES = Path(__file__).parents[2] / "docs" / "howto"


# reports are made, and looked at in a browser, in the figures' tests too
@pytest.mark.parametrize("page", ["diagnose", "plan", pytest.param("report", marks=pytest.mark.slow)])
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
