"""Every block of code in the README runs, and prints what the README says it prints."""

import re
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"
BLOCK = re.compile(r"^```python\n(.*?)^```\n+^```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e-?\d+)?(?![\w])")
BLOCKS = BLOCK.findall(README.read_text(encoding="utf-8"))


def test_no_block_of_code_is_without_its_output():
    assert len(BLOCKS) == README.read_text(encoding="utf-8").count("```python") == 3


@pytest.mark.parametrize(("code", "printed"), BLOCKS, ids=["practitioner", "theorist", "experimenter"])
def test_a_block_prints_what_the_readme_shows(code, printed, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    exec(compile(code, str(README), "exec"), {})
    got = capsys.readouterr().out
    # words must agree; numbers may differ by rounding between machines
    assert NUMBER.sub("#", got).split() == NUMBER.sub("#", printed).split()
    for ours, shown in zip(NUMBER.findall(got), NUMBER.findall(printed), strict=True):
        assert float(ours) == pytest.approx(float(shown), rel=0.03, abs=2e-3)
