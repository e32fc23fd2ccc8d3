"""The code on the pages about learning runs from top to bottom."""

import re
from pathlib import Path

import pytest

PAGES = Path(__file__).parents[2] / "docs" / "howto"


@pytest.mark.parametrize("page", ["estimators", "bayes", "model-files", "inference"])
def test_the_page_runs(page):
    blocks = re.findall(r"```python\n(.*?)```", (PAGES / f"{page}.md").read_text(encoding="utf-8"), re.DOTALL)
    assert blocks
    scope: dict = {"__name__": "page"}
    for block in blocks:
        exec(compile(block, page, "exec"), scope)
