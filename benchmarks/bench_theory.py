"""The theory engine: one solve against the same equations written the plain way, and whole phase diagrams."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import expit

from benchmarks import Row, best_time, interleaved
from outlearn import theory
from outlearn.model import Ensemble


def plain_averages(m: float, sd: float, b: float) -> list[float]:
    """<sigma>, <x sigma>, <sigma²>, each by its own quad, with a scalar root at every node."""

    def weight(a: float) -> float:
        return float(expit(brentq(lambda s: s - a - b * expit(s), a - 1e-9, a + b + 1e-9)))

    def average(f: Callable[[float, float], float]) -> float:
        value, _ = quad(lambda x: f(x, weight(m + sd * x)) * math.exp(-0.5 * x * x), -8.0, 8.0, epsabs=1e-9)
        return float(value) / math.sqrt(2.0 * math.pi)

    return [average(lambda x, p: p), average(lambda x, p: x * p), average(lambda x, p: p * p)]


def plain_soft(e: Ensemble, alpha: float, tolerance: float = 1e-8) -> tuple[float, float, float]:
    """Exact soft equations by damped iteration."""
    g, eta, gamma = e.gamma, e.eta, e.gamma
    share = (e.outlier_fraction, e.informative_fraction)

    R, Q, z = 0.8, 0.8, 1.0 / (1.0 + g * alpha * share[1])
    for _ in range(500):
        b, sd = g * g * z / gamma, g * math.sqrt(Q / gamma)
        means = np.array([plain_averages(g * R * V - 0.5 * g * Q - eta, sd, b) for V in (0, 1)])
        level, tilt, square = share @ means
        new_z = 1.0 / (1.0 + alpha * g * (level - tilt / math.sqrt(gamma * Q)))
        new_R = z * alpha * share[1] * g * means[1, 0]
        new_Q = new_R**2 + z * z * alpha * g * g / gamma * square
        step = max(abs(new_R - R), abs(new_Q - Q), abs(new_z - z))
        R, Q, z = 0.5 * (R + new_R), 0.5 * (Q + new_Q), 0.5 * (z + new_z)
        if step < tolerance:
            break
    return R, Q, z


def rows() -> Iterator[Row]:
    soft, hard, bayes = theory.SoftSelection(), theory.HardSelection(), theory.BayesOptimal()
    e = Ensemble(eta=0.0, gamma=10.0)
    s = theory.solve(soft, e, 2.0)
    plain = plain_soft(e, 2.0)
    apart = max(abs(x - y) for x, y in zip(plain, (s.R, s.Q, s.z), strict=True))
    theirs, twenty = interleaved(
        lambda: plain_soft(e, 2.0), lambda: [theory.solve(soft, e, 2.0) for _ in range(20)], repeats=3
    )
    ours = twenty / 20
    yield Row(
        what="quad + damped iteration / solve, soft",
        ratio=theirs / ours,
        aim="200",
        detail=f"alpha=2 eta=0; ours {1e3 * ours:.2f} ms; the two differ by {apart:.0e}",
    )
    for learner, alpha, eta in ((soft, 20.0, 3.9), (hard, 20.0, 3.0), (bayes, 20.0, 4.0)):
        here = Ensemble(eta=eta, gamma=10.0)
        one = best_time(
            lambda learner=learner, here=here, alpha=alpha: theory.solve(learner, here, alpha), 20
        )
        yield Row(
            what=f"one solve of {type(learner).__name__}, ms",
            ratio=1e3 * one,
            aim="below 5",
            detail=f"alpha={alpha:g} eta={eta:g}, all branches compared",
        )
    alphas, etas = np.geomspace(0.5, 200.0, 100), np.linspace(-2.0, 12.0, 100)
    for learner in (soft, hard, bayes):
        theory.phase_diagram(learner, gamma=10.0, alphas=alphas[:2], etas=etas[:2])
        kept = []

        def draw(learner: theory.Learner = learner, kept: list[theory.PhaseDiagram] = kept) -> None:
            kept.append(theory.phase_diagram(learner, gamma=10.0, alphas=alphas, etas=etas))

        seconds = best_time(draw, 1)
        single = best_time(lambda learner=learner: theory.solve(learner, Ensemble(4.0, 10.0), 20.0), 10)
        yield Row(
            what=f"10000 single solves / 100 x 100 diagram, {type(learner).__name__}",
            ratio=1e4 * single / seconds,
            aim="diagram below 30 s",
            detail=f"{seconds:.1f} s, {kept[0].n_branches.sum()} solutions, {len(kept[0].lines)} lines",
        )
