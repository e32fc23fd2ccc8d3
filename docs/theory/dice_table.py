"""Write dice_table.txt: matrix-free runs at N = 100000 beside the exact theory.

Usage: python docs/theory/dice_table.py STORE [RUNS]
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from outlearn import theory
from outlearn.simulation import Campaign, grid, text_progress


def main(store: str, runs: int = 40) -> None:
    tasks = grid(learner="soft", eta=[0.0, 2.0], n_features=100_000, alpha=20, runs=runs)
    result = Campaign(tasks, seed=0).run(store, progress=text_progress())
    lines = [
        f"soft selection, N = 100000, P = 2000000, gamma = 10, {runs} runs from random starts, seed 0",
        "",
        f"{'eta':>4} {'':8} {'runs':>24} {'exact theory':>14} {'(runs - theory)/s.e.':>22}",
    ]
    for task, stats in result:
        point = theory.solve(theory.SoftSelection(), task.ensemble, task.alpha)
        exact = {"R": point.R, "Q": point.Q, "Phi": point.angle, "f": point.free_energy, "z": point.z}
        for name, value in exact.items():
            mean = getattr(stats, "energy" if name == "f" else name)
            lines.append(
                f"{task.ensemble.eta:>4g} {name:8} {mean.mean:>14.6f} ± {mean.standard_error:.6f} "
                f"{value:>14.6f} {(mean.mean - value) / mean.standard_error:>22.1f}"
            )
    (Path(__file__).parent / "dice_table.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    begin = time.perf_counter()
    main(sys.argv[1], *map(int, sys.argv[2:3]))
    print(f"{time.perf_counter() - begin:.0f} s")
