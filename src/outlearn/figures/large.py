"""Runs far beyond what fits into memory, drawn matrix-free, against exact theory digit by digit."""

from __future__ import annotations

import time

import numpy as np

from outlearn.figures.compare import agree, verdict
from outlearn.figures.plate import Plate, Setting
from outlearn.figures.style import Book
from outlearn.simulation import grid
from outlearn.simulation.cost import dense_bytes
from outlearn.simulation.run import make_runs

__all__ = ["draw"]

_TIMED = 10**6  # index of a run outside the campaign, made again each time to be timed


def draw(setting: Setting) -> Plate:
    """Make the table: it has no figure."""
    tasks = grid(
        learner="soft",
        eta=(0.0, 2.0),
        alpha=20.0,
        n_features=setting.pick(100_000, 10_000, 200),
        runs=setting.pick(10, 8, 3),
        draw="matrix-free",
    )
    measured = setting.runs(tasks)
    book = Book()
    rows = []
    points = agree(measured)
    for task, point in zip(tasks, points, strict=True):
        begin, used = time.monotonic(), time.process_time()
        make_runs(task, setting.seed, [_TIMED])
        seconds, cpu = time.monotonic() - begin, time.process_time() - used
        row = {
            "N": task.n_features,
            "P": task.n_samples,
            "eta": task.ensemble.eta,
            "runs": point.runs,
            "seconds a run": round(seconds, 2),
            "processor seconds": round(cpu, 2),
            "dense matrix (GB)": round(dense_bytes(task.n_features, task.n_samples) / 1e9, 1),
        }
        for name in point.theory:
            row |= {
                f"{name} theory": round(point.theory[name], 6),
                f"{name} runs": round(point.mean[name], 6),
                f"± {name}": round(point.error[name], 6),
                f"{name} difference": round(point.mean[name] - point.theory[name], 6),
            }
        rows.append(row)
        book.write(
            "table", f"eta = {task.ensemble.eta:g}", "runs", **{k: np.array(v) for k, v in row.items()}
        )
    widest = max(abs(p.mean[name] - p.theory[name]) for p in points for name in p.theory)
    angle = max(abs(p.mean["Phi"] - p.theory["Phi"]) for p in points)
    n = tasks[0].n_features
    return Plate(
        name="large",
        title="Matrix-free runs at large N",
        caption=f"Soft selection by EM at α = 20, N = {n}: the data matrix of "
        f"{rows[0]['dense matrix (GB)']} GB is "
        "never drawn, only what EM asks of it, by Gaussian conditioning. Times on one core of a shared "
        "machine.",
        figure=None,
        book=book,
        agreement=points,
        table=rows,
        findings=[
            f"Means over {points[0].runs} runs at N = {n} differ from exact theory by at most "
            f"{widest:.1e} in R, Q and "
            f"Φ, by at most {angle:.1e} in Φ.",
            *verdict(points),
        ],
    )
