"""The code on the pages about learning runs from top to bottom, and prints what they show."""

import re
from pathlib import Path

import pytest

PAGES = Path(__file__).parents[2] / "docs" / "howto"


@pytest.mark.parametrize("page", ["estimators", "bayes", "model-files", "inference"])
def test_the_page_runs(page, capsys):
    text = (PAGES / f"{page}.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```(?:\s*```text\n(.*?)```)?", text, re.DOTALL)
    assert blocks
    scope: dict = {"__name__": "page"}
    for code, shown in blocks:
        exec(compile(code, page, "exec"), scope)
        printed = capsys.readouterr().out
        if shown:
            assert printed.strip() == shown.strip()
