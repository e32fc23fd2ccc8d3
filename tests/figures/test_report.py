"""The report: self-contained, complete, and looked at in a real browser at two widths."""

from __future__ import annotations

import re
import shutil
import subprocess
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

from outlearn.figures.report import report_html, write_report
from outlearn.model import Ensemble, sample
from outlearn.practice import diagnose

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--enable-logging=stderr",
    "--v=0",
    "--virtual-time-budget=2000",
]


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    data = sample(Ensemble.from_contamination(0.7, gamma=8.0), 20, 300, 0)
    X = pd.DataFrame(data.X, index=[f"patient <{k}>" for k in range(300)])
    y = np.where(data.y > 0, "sick & ill", "healthy")
    found = diagnose(X, y)
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_report(path, found, X, y, title="cohort <A>", n_folds=3, notices=["1 column was left out"])
    return path, found


def test_it_is_whole_and_needs_no_network(page):
    path, found = page
    text = path.read_text(encoding="utf-8")
    for words in (
        "of the examples are garbage",
        "Who is informative",
        "Learning curve",
        "Phase diagram",
        "most doubtful examples",
        "Do the data look like the model",
        "plain classifiers",
        "1 column was left out",
        "cohort &lt;A&gt;",
        "patient &lt;",
        "sick &amp; ill",
    ):
        assert words in text, words
    assert text.index("of the examples are garbage") < text.index("Who is informative")
    # links of XML namespaces are names, not addresses
    addresses = re.findall(r'(?:src|href|action)\s*=\s*"([^"]*)"', text)
    assert all(a.startswith(("#", "data:")) for a in addresses), addresses
    assert "@import" not in text
    assert "<script" not in text
    assert found.goodness.statement in text


class Ids(HTMLParser):
    def __init__(self):
        super().__init__()
        self.ids, self.used, self.open = [], set(), []

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name == "id":
                self.ids.append(value)
            if value and name in ("href", "xlink:href") and value.startswith("#"):
                self.used.add(value[1:])
            if value and value.startswith("url(#"):
                self.used.add(value[5:-1])


def test_pictures_do_not_share_ids(page):
    parser = Ids()
    parser.feed(page[0].read_text(encoding="utf-8"))
    assert len(parser.ids) == len(set(parser.ids))
    assert parser.used <= set(parser.ids)


def test_noise_gives_a_report_too():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((80, 10)), rng.integers(0, 2, 80)
    text = report_html(diagnose(X, y), X, y, n_folds=0)
    assert "No signal" in text
    for part in ("Phase diagram", "most doubtful", "trust:", "right labels"):
        assert part not in text, part


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine (Debian: apt install chromium)")
@pytest.mark.parametrize("width", [500, 1400])
def test_a_browser_shows_it_without_errors(page, width, tmp_path):
    # --window-size is at least 500 in headless mode: the 400 px column is an iframe inside a wide page
    path, _ = page
    frame = tmp_path / "frame.html"
    inner = 400 if width == 500 else 1400
    frame.write_text(
        '<!doctype html><link rel="icon" href="data:,">'
        f'<iframe id=f src="file://{path}" width={inner} height=900></iframe>'
        "<script>addEventListener('load', () => { const d = f.contentDocument.documentElement;"
        "const cut = [...f.contentDocument.querySelectorAll('.scroll')]"
        ".filter(e => e.scrollWidth > e.clientWidth + 1).length;"
        "const wide = [...f.contentDocument.querySelectorAll('main *')].filter(e => !e.closest('.scroll') &&"
        " e.getBoundingClientRect().right > d.clientWidth + 1).length;"
        "document.title = `measured ${d.scrollWidth} ${d.clientWidth} ${wide} ${cut} "
        "${f.contentDocument.querySelectorAll('svg').length}`; })</script>"
    )
    done = subprocess.run(
        [
            CHROMIUM,
            *FLAGS,
            "--allow-file-access-from-files",
            f"--user-data-dir={tmp_path / 'profile'}",
            f"--window-size={width},900",
            "--dump-dom",
            f"file://{frame}",
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    measured = re.search(r"measured (\d+) (\d+) (\d+) (\d+) (\d+)", done.stdout)
    assert measured is not None, done.stderr[-2000:]
    scroll, client, sticking_out, cut, pictures = map(int, measured.groups())
    assert scroll <= client, "the page scrolls sideways"
    assert sticking_out == 0
    assert cut == 0, "a table does not fit"
    assert pictures == 5
    assert "CONSOLE" not in done.stderr, [line for line in done.stderr.splitlines() if "CONSOLE" in line]
