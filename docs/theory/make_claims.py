"""Measure what the claims need and write the table.

python docs/theory/make_claims.py            # write claims.md from the recorded runs
python docs/theory/make_claims.py --measure  # run the algorithms again first (about a minute)
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

import numpy as np

from outlearn.inference import hard_em, hebb, soft_em
from outlearn.inference.amp import amp
from outlearn.model import Ensemble, angle, sample
from outlearn.theory import HardSelection
from outlearn.theory.claims import claims

HERE = Path(__file__).parent
RECORD = HERE.parents[1] / "src/outlearn/theory/claims_measured.csv"
SEED = 20240

# claim, quantity, what was run, learner, start, N, alpha, eta, gamma, runs
PLAN = [
    ("soft-order-parameters", "R", "EM, Hebb start", "soft", "hebb", 500, 1.0, 0.0, 10.0, 240),
    ("soft-order-parameters", "Q", "EM, Hebb start", "soft", "hebb", 500, 1.0, 0.0, 10.0, 240),
    ("soft-transition", "Φ(η=2)", "EM from B", "soft", "truth", 300, 20.0, 2.0, 10.0, 10),
    ("soft-transition", "Φ(η=3.5)", "EM from B", "soft", "truth", 300, 20.0, 3.5, 10.0, 10),
    ("soft-transition", "Φ(η=5)", "EM from B", "soft", "truth", 300, 20.0, 5.0, 10.0, 10),
    (
        "stability",
        "spread of energy/N, 8 random starts (η=2)",
        "EM",
        "spread",
        "random",
        200,
        20.0,
        2.0,
        10.0,
        5,
    ),
    (
        "stability",
        "spread of energy/N, 8 random starts (η=4.5)",
        "EM",
        "spread",
        "random",
        200,
        20.0,
        4.5,
        10.0,
        5,
    ),
    ("hebb", "Δ Hebb", "closed form", "hebb", "", 300, 20.0, 0.0, 10.0, 10),
    ("hebb", "Δ soft", "EM, Hebb start", "soft", "hebb", 300, 20.0, 0.0, 10.0, 10),
    ("r-infinity", "R(η=0)", "EM, α = 2000", "soft", "hebb", 20, 2000.0, 0.0, 10.0, 20),
    ("r-infinity", "R(η=4)", "EM, α = 20000", "soft", "truth", 20, 20000.0, 4.0, 10.0, 8),
    ("hard-moment", "Q", "EM from B", "hard", "truth", 300, 20.0, 1.0, 10.0, 20),
    ("hard-moment", "Q", "EM, Hebb start", "hard", "hebb", 300, 20.0, 1.0, 10.0, 20),
    ("figure-7", "Φ(γ=0.3, η=1.5)", "EM from R_inf B, α = 20000", "hard", "limit", 20, 20000.0, 1.5, 0.3, 6),
    (
        "figure-7",
        "Φ(γ=0.3, η=1.5)",
        "EM, random start, α = 20000",
        "hard",
        "random",
        20,
        20000.0,
        1.5,
        0.3,
        6,
    ),
    ("figure-7", "Φ(γ=1, η=5)", "EM from B, α = 40000", "hard", "truth", 10, 40000.0, 5.0, 1.0, 6),
    (
        "threshold",
        "Φ(γ=0.2, η=0.5)",
        "EM, random start, α = 20000",
        "hard",
        "random",
        20,
        20000.0,
        0.5,
        0.2,
        6,
    ),
    ("arbitrary-fraction", "Φ(η=4)", "EM from B, α = 500", "soft", "truth", 50, 500.0, 4.0, 10.0, 10),
    ("posterior-mean", "Φ message passing", "AMP", "amp", "auto", 500, 20.0, 4.0, 10.0, 12),
    ("posterior-mean", "Φ MAP", "EM, random start", "soft", "random", 300, 20.0, 4.0, 10.0, 10),
]


def run_one(
    learner: str, start: str, n: int, alpha: float, eta: float, gamma: float, rng: np.random.Generator
) -> dict:
    e = Ensemble(eta, gamma)
    data = sample(e, n, round(alpha * n), rng)
    known = {"contamination": e.outlier_fraction, "noise_variance": 1.0 / gamma}
    unit = data.center / np.sqrt(n)
    if learner == "spread":
        energies = [
            soft_em(data.X, data.y, **known, init="random", n_init=1, accelerate=False, rng=rng).energy / n
            for _ in range(8)
        ]
        return {"spread": float(np.std(energies))}
    at = unit if start == "truth" else start
    if start == "limit":
        at = HardSelection().limit(e).R_inf * unit
    if learner == "hebb":
        center = hebb(data.X, data.y, noise_variance=1.0 / gamma).center
    elif learner == "amp":
        center = amp(data.X, data.y, **known, rng=rng).center
    else:
        fit = {"soft": soft_em, "hard": hard_em}[learner]
        extra = {"n_init": 1} if start == "random" else {}
        center = fit(data.X, data.y, **known, init=at, rng=rng, **extra).center
    R, Q = float(center @ unit), float(center @ center)
    return {"R": R, "Q": Q, "Φ": float(angle(R, Q)), "Δ": Q - 2 * R + 1}


COLUMNS = ["claim", "quantity", "what", "mean", "error", "runs", "N", "alpha", "eta", "gamma", "seed"]


def measure(only: list[str]) -> None:
    """Run the rows of the claims named (all when none is) and keep the record of the others."""
    with RECORD.open(encoding="utf-8") as file:
        kept = {(row["claim"], row["quantity"], row["what"]): row for row in csv.DictReader(file)}
    rows = []
    for i, (claim, quantity, what, learner, start, n, alpha, eta, gamma, runs) in enumerate(PLAN):
        if only and claim not in only:
            rows.append(kept[claim, quantity, what])
            continue
        # R and Q of one setting are read off the same runs
        same = next(j for j, row in enumerate(PLAN) if row[3:] == PLAN[i][3:])
        key = "spread" if learner == "spread" else quantity[0]
        values = [
            run_one(learner, start, n, alpha, eta, gamma, np.random.default_rng([SEED, same, k]))[key]
            for k in range(runs)
        ]
        mean, error = np.mean(values), np.std(values, ddof=1) / np.sqrt(runs)
        print(claim, quantity, mean, error, flush=True)
        numbers = [f"{mean:.6g}", f"{error:.3g}", runs, n, alpha, eta, gamma, SEED]
        rows.append(dict(zip(COLUMNS, [claim, quantity, what, *numbers], strict=True)))
    with RECORD.open("w", newline="", encoding="utf-8") as file:
        out = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        out.writeheader()
        out.writerows(rows)


def write_page() -> None:
    lines = [
        "# The paper's claims, one by one",
        "",
        "Written by `docs/theory/make_claims.py`. The printed and exact columns are computed by",
        "`outlearn.theory.claims()`; the runs are recorded in `src/outlearn/theory/claims_measured.csv`",
        "and made again with `--measure`. `±` is one standard error over independent data sets.",
        "Derivations: [errata](errata.md).",
        "",
        "| place | claim | printed equations | exact equations | runs | verdict |",
        "|---|---|---|---|---|---|",
    ]
    for c in claims():
        lines.append("| " + " | ".join((c.place, c.claim, c.printed, c.exact, c.measured, c.verdict)) + " |")
    (HERE / "claims.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--measure", nargs="*", metavar="CLAIM", help="run the algorithms again (for these claims)"
    )
    wanted = parser.parse_args().measure
    if wanted is not None:
        measure(wanted)
    write_page()
