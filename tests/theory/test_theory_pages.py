"""The code on the pages runs as it stands."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
PAGES = [
    *(
        f"theory/{name}.md"
        for name in ("engine", "soft", "hard", "numerics", "bayes", "gibbs", "empirical-risk", "errata")
    ),
    "howto/add-a-loss.md",
]


@pytest.mark.parametrize("page", PAGES)
def test_code_on_the_page_runs(page, capsys):
    if not (DOCS / page).exists():
        pytest.skip("docs are not installed")
    text = (DOCS / page).read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```(?:\s*```text\n(.*?)```)?", text, re.DOTALL)
    assert blocks
    for code, shown in blocks:
        exec(compile(code, page, "exec"), {"__name__": "page"})
        printed = capsys.readouterr().out.strip()
        assert printed
        if shown:
            assert printed == shown.strip()


def test_the_loss_of_the_how_to_is_right():
    import numpy as np

    from outlearn.model import Ensemble
    from outlearn.numerics.proximal import proximal_by_search
    from outlearn.theory import EmpiricalRisk, Huber, solve

    scope: dict = {"__name__": "page"}
    block = re.findall(
        r"```python\n(.*?)```", (DOCS / "howto/add-a-loss.md").read_text(encoding="utf-8"), re.DOTALL
    )
    exec(block[0], scope)
    loss = scope["Absolute"]()
    w = np.linspace(-4, 5, 19)
    np.testing.assert_allclose(
        loss.prox(w, 0.8), proximal_by_search(loss.value, w, 0.8, reach=6.0), atol=2e-6
    )
    # Huber's loss over its delta tends to the absolute deviation
    delta = 1e-3
    e = Ensemble(0.0, 4.0)
    near = solve(EmpiricalRisk(Huber(delta), 0.5 * delta), e, 3.0)
    own = solve(EmpiricalRisk(loss, 0.5), e, 3.0)
    assert pytest.approx(near.R, abs=2e-3) == own.R
    assert pytest.approx(near.Q, abs=2e-3) == own.Q
