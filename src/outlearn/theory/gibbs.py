"""Learning at finite temperature: a vector drawn with probability ∝ P(D, J)^β (Eq. freebeta), any real β >=
1.

With D = Q - q, a = -γ̃Q/2 - η̃ + γ̃VR + γ̃√(q/γ) x, s² = γ̃²D/γ and G(a) = ln ⟨(1 + e^(a + s y))^β⟩_y,

    f = (R² - Q)/(2βD) - ln D/(2β) + Q/2 - (α/β) Σ_V p_V ⟨G⟩                            (G1)
    R = D α p₁ γ̃ ⟨G'⟩_(V=1)                                                            (G2)
    q = R² + D² α (γ̃²/γ) Σ_V p_V ⟨G'²⟩                                                  (G3)
    1/D = β + α γ̃ Σ_V p_V [⟨G'⟩ - (γ̃/γ) ⟨G''⟩]                                          (G4)

Under the weight (1 + e^(a+sy))^β Dy, G' = ⟨βσ⟩ and G'' + G'² = ⟨βσ(1-σ) + β²σ²⟩: sums of positive terms.
For whole β the inner average is a binomial sum over the paper's decision variables V_b, exact for any s.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numba import njit
from numpy.typing import NDArray

from outlearn.model import Ensemble, angle, distance
from outlearn.model.checks import number
from outlearn.numerics.gaussian import gaussian_nodes
from outlearn.theory.bayes_averages import SIGMOID
from outlearn.theory.bayes_roots import roots
from outlearn.theory.limit import Limit
from outlearn.theory.search import search
from outlearn.theory.soft import SoftSelection, log_averages
from outlearn.theory.system import Points, System

__all__ = ["Gibbs", "GibbsSystem"]

Array = NDArray[np.float64]

_BINOMIAL_UP_TO = 64
_REACH = 8.9
_LOG_EPS = 37.5
_NODES_AT_MOST = 400_000
_COLD = 5  # solutions of zero temperature that a search starts from


@njit(cache=True, nogil=True)
def _binomial(fields: Array, spread: float, beta: float, everything: bool, out: Array) -> None:
    """The average as a sum over k = Σ_b V_b; without doubt about any example only k = β is left."""
    terms = 1 if everything else int(beta) + 1
    level = np.empty(terms)
    log_weight = np.empty(terms)
    base = np.zeros(terms)
    for j in range(terms):
        level[j] = beta if everything else float(j)
        if j > 0:
            base[j] = base[j - 1] + math.log((beta - j + 1.0) / j)
    for j in range(terms):
        base[j] += 0.5 * (level[j] * spread) ** 2
    for i in range(fields.size):
        log_weight[:] = base + level * fields[i]
        top = log_weight.max()
        weight = np.exp(log_weight - top)
        total = weight.sum()
        mean = (weight * level).sum() / total
        away = level - mean
        out[0, i] = top + math.log(total)
        out[1, i] = mean
        out[2, i] = (weight * away**2).sum() / total
        out[3, i] = (weight * away**3).sum() / total


@njit(cache=True, nogil=True)
def _trapezoid(fields: Array, spread: float, beta: float, shift: float, out: Array) -> None:
    """The average by the trapezoidal rule, which converges here as it does in ``bayes_averages``.

    |1 + e^(s + iθ)| <= 1 + e^s bounds the integrand in the strip. Between two nodes a distance d apart the
    log of the integrand exceeds their larger value by d²/8 at most, so that blocks that cannot matter are
    skipped.
    """
    strip, widest = math.pi / spread, math.sqrt(2.0 * _LOG_EPS)
    depth = strip if strip < widest else widest
    step = 2.0 * math.pi * depth / (_LOG_EPS + 0.5 * depth * depth)
    block = max(2, int(5.8 / step))
    slack = 40.0 + 0.125 * (block * step) ** 2
    blocks = int((beta * spread + 2.0 * _REACH) / (step * block)) + 2
    if blocks * block > _NODES_AT_MOST:
        out[:] = np.nan
        return
    edge = np.empty(blocks + 1)
    sigma, weight = np.empty(blocks * block), np.empty(blocks * block)
    for i in range(fields.size):
        top = -math.inf
        for j in range(blocks + 1):
            y = -_REACH + (j * block + shift) * step
            s = fields[i] + spread * y
            edge[j] = beta * (max(s, 0.0) + math.log1p(math.exp(-abs(s)))) - 0.5 * y * y
            top = max(top, edge[j])
        used = 0
        total = first = 0.0
        for j in range(blocks):
            if max(edge[j], edge[j + 1]) < top - slack:
                continue
            for n in range(block):
                y = -_REACH + (j * block + n + shift) * step
                s = fields[i] + spread * y
                small = math.exp(-abs(s))
                w = math.exp(beta * (max(s, 0.0) + math.log1p(small)) - 0.5 * y * y - top)
                sigma[used] = (1.0 if s > 0.0 else small) / (1.0 + small)
                weight[used] = w
                total += w
                first += w * sigma[used]
                used += 1
        mean = beta * first / total
        # cumulants of u = βσ and averages of its derivatives u', u'' under the weight
        variance = skew = slope = curve = cross = 0.0
        for n in range(used):
            away = beta * sigma[n] - mean
            rise = beta * sigma[n] * (1.0 - sigma[n])
            variance += weight[n] * away * away
            skew += weight[n] * away**3
            slope += weight[n] * rise
            curve += weight[n] * rise * (1.0 - 2.0 * sigma[n])
            cross += weight[n] * away * rise
        out[0, i] = top + math.log(total * step) - 0.5 * math.log(2.0 * math.pi)
        out[1, i] = mean
        out[2, i] = (slope + variance) / total
        out[3, i] = (curve + 3.0 * cross + skew) / total


@njit(cache=True, nogil=True)
def inner_average(fields: Array, spread: float, beta: float, shift: float, everything: bool) -> Array:
    """Return G and its first three derivatives at each field a; ``shift`` moves trapezoidal nodes."""
    out = np.empty((4, fields.size))
    if everything or (beta == math.floor(beta) and beta <= _BINOMIAL_UP_TO):
        _binomial(fields, spread, beta, everything, out)
    else:
        _trapezoid(fields, spread, beta, shift, out)
    return out


@dataclass(frozen=True, slots=True)
class GibbsSystem(System):
    """Eqs. G2-G4 in the coordinates (ln R, ln(q - R²), ln(Q - q))."""

    beta: float

    names: ClassVar[tuple[str, ...]] = ("ln R", "ln(q-R²)", "ln(Q-q)")
    orientation: ClassVar[int] = -1

    def _averages(
        self, points: Points, k: int, v: Array, widest: float = 3.0, shift: float = 0.0
    ) -> tuple[float, float, float, float, Array] | None:
        """R, q, D, the width of the outer field and, per V, averages of G and its derivatives."""
        if not (np.isfinite(v).all() and np.abs(v).max() < 300.0):
            return None
        R, D = math.exp(v[0]), math.exp(v[2])
        q = R * R + math.exp(v[1])
        gamma, gt, eta_t = points.gamma[k], points.gamma_tilde[k], points.eta_tilde[k]
        spread, outer = gt * math.sqrt(D / gamma), gt * math.sqrt(q / gamma)
        if not (1e-150 < outer < 1e150 and 1e-150 < spread < 1e150):
            return None
        everything = eta_t == -math.inf
        # G bends at a = -β s²/2, about which it is symmetric, ever more sharply as β grows
        away = np.array([4.0**i for i in range(-int(math.log(self.beta, 4.0)) - 1, 5)])
        offsets = np.concatenate([-away[::-1], [0.0], away])
        rows = np.empty((2, 13))
        for V in range(2):
            mean = gt * R * V - 0.5 * gt * (q + D) - (0.0 if everything else eta_t)
            bend = (offsets - 0.5 * self.beta * spread * spread - mean) / outer
            x, weight = gaussian_nodes(bend, order=16, widest=widest)
            g, g1, g2, g3 = inner_average(mean + outer * x, spread, self.beta, shift, everything)
            by_width = 0.5 * g3 + g1 * g2  # derivative of G' in s²
            rows[V] = (
                np.stack(
                    (
                        g,
                        g1,
                        g1 * g1,
                        x * g1,
                        g2,
                        x * g2,
                        x * x * g2,
                        g1 * g2,
                        x * g1 * g2,
                        by_width,
                        g1 * by_width,
                        x * by_width,
                        g2 * g2,
                    )
                )
                @ weight
            )
        return R, q, D, outer, rows

    def evaluate(self, points: Points, v: Array) -> tuple[Array, Array]:
        """Residual and exact Jacobian, by the heat equation ∂G/∂(s²) = (G'' + G'²)/2."""
        return self._evaluate(points, v, 3.0, 0.0)

    def _evaluate(self, points: Points, v: Array, widest: float, shift: float) -> tuple[Array, Array]:
        residual, jacobian = np.full((len(v), 3), np.nan), np.full((len(v), 3, 3), np.nan)
        for k in range(len(v)):
            found = self._averages(points, k, v[k], widest, shift)
            if found is None:
                continue
            R, q, D, outer, a = found
            alpha, gamma, gt = points.alpha[k], points.gamma[k], points.gamma_tilde[k]
            share = np.array([points.p0[k], points.p1[k]])
            _, level, square, tilt = share @ a[:, :4]
            signal = share[1] * a[1, 1]
            if not (signal > 1e-290 and square > 1e-290):
                continue
            curve = tilt / outer
            bracket = self.beta + alpha * gt * (level - gt / gamma * curve)
            residual[k] = (
                v[k, 0] - v[k, 2] - math.log(alpha * gt * signal),
                v[k, 1] - 2.0 * v[k, 2] - math.log(alpha * gt * gt / gamma * square),
                1.0 - D * bracket,
            )
            dq = np.array([2.0 * R * R, math.exp(v[k, 1]), 0.0])
            dD = np.array([0.0, 0.0, D])
            d_width = gt * gt / gamma * dD
            d_outer = 0.5 * outer / q * dq
            d_level, d_square, d_tilt, d_signal = np.zeros(3), np.zeros(3), np.zeros(3), np.zeros(3)
            for V in range(2):
                dm = gt * V * np.array([R, 0.0, 0.0]) - 0.5 * gt * (dq + dD)
                _, _, _, _, g2, xg2, xxg2, gg2, xgg2, w, gw, xw = a[V, :12]
                d_signal = share[V] * (g2 * dm + xg2 * d_outer + w * d_width)  # V = 1 is last
                d_level += d_signal
                d_square += 2.0 * share[V] * (gg2 * dm + xgg2 * d_outer + gw * d_width)
                d_tilt += share[V] * (xg2 * dm + xxg2 * d_outer + xw * d_width)
            unit = np.eye(3)
            d_curve = (d_tilt - curve * d_outer) / outer
            jacobian[k, 0] = unit[0] - unit[2] - d_signal / signal
            jacobian[k, 1] = unit[1] - 2.0 * unit[2] - d_square / square
            jacobian[k, 2] = -D * (unit[2] * bracket + alpha * gt * (d_level - gt / gamma * d_curve))
        return residual, jacobian

    def free_energy(self, points: Points, v: Array) -> Array:
        """Eq. G1."""
        out = np.full(len(v), np.nan)
        for k in range(len(v)):
            found = self._averages(points, k, v[k], 1.5)
            if found is not None:
                _, q, D, _, a = found
                energy = points.p0[k] * a[0, 0] + points.p1[k] * a[1, 0]
                entropy = -(math.exp(v[k, 1]) + D) / (2.0 * self.beta * D) - 0.5 * v[k, 2] / self.beta
                out[k] = entropy + 0.5 * (q + D) - points.alpha[k] / self.beta * energy
        return out

    def at_eigenvalue(self, points: Points, v: Array) -> Array:
        """Replicon number α (γ̃² D/γ)² ⟨G''²⟩: replica symmetry is stable iff it is below 1."""
        out = np.full(len(v), np.nan)
        for k in range(len(v)):
            found = self._averages(points, k, v[k])
            if found is not None:
                _, _, D, _, a = found
                scale = points.gamma_tilde[k] ** 2 * D / points.gamma[k]
                out[k] = points.alpha[k] * scale**2 * (points.p0[k] * a[0, 12] + points.p1[k] * a[1, 12])
        return out

    def quadrature_error(self, points: Points, v: Array) -> Array:
        """Move of (R, Q) by one Newton step with outer panels halved and inner nodes shifted."""
        residual, jacobian = self.evaluate(points, v)
        fine, _ = self._evaluate(points, v, 1.5, 0.5)
        out = np.full(len(v), np.nan)
        for k in range(len(v)):
            if np.isfinite(jacobian[k]).all() and np.isfinite(fine[k]).all():
                step = np.linalg.lstsq(jacobian[k], fine[k] - residual[k], rcond=None)[0]
                R, T, D = np.exp(v[k])
                out[k] = max(abs(R * step[0]), abs(2.0 * R * R * step[0] + T * step[1] + D * step[2]))
        return out

    def order_parameters(self, points: Points, v: Array) -> dict[str, Array]:
        """R, Q of one sample, q between two, z = β(Q - q), and the two errors of the samples' mean."""
        with np.errstate(over="ignore"):
            R, T, D = np.exp(v).T
            q = R * R + T
        return {
            "R": R,
            "Q": q + D,
            "q": q,
            "z": self.beta * D,
            "mean_angle": np.asarray(angle(R, q)),
            "mean_distance": np.asarray(distance(R, q)),
        }

    def starts(self, points: Points) -> Array:
        """Solutions of the matched problem at β = 1 and of zero temperature, and some of its starts."""
        zero = SoftSelection().system()
        guesses, found = zero.starts(points), search(zero, points)
        solved = np.full((_COLD, len(points), 3), np.nan)
        for k in range(len(points)):
            mine = found.v[found.of(k)][:_COLD]
            solved[: len(mine), k] = mine
        cold = np.concatenate([solved, guesses[:: max(1, len(guesses) // 5)]])
        cold[:, :, 2] -= math.log(self.beta)
        if self.beta == 1.0:  # a matched learner's only solutions are the Bayes-optimal ones
            cold[:, (points.gamma == points.gamma_tilde) & (points.eta == points.eta_tilde)] = np.nan
        warm = np.full((3, len(points), 3), np.nan)
        for k in range(len(points)):
            ts = roots(float(points.alpha[k]), float(points.eta[k]), float(points.gamma[k]))
            for i, t in enumerate(ts[:3]):
                log_q, log_rest = -np.logaddexp(0.0, -t), -np.logaddexp(0.0, t)
                warm[i, k] = log_q, log_q + log_rest, log_rest - math.log(self.beta)
        return np.concatenate([warm, cold])


@dataclass(frozen=True, slots=True)
class Gibbs:
    """Gibbs learning: one vector drawn from the posterior raised to the power β (Eq. freebeta).

    R, Q and the errors of the result belong to one drawn vector; q, ``mean_angle`` and ``mean_distance``
    (in its details) to the average of many. At β = 1 and with a matched learner Q = 1 and R = q
    (Nishimori): the sample has cosine q with the truth, the mean has √q, the Bayes-optimal one. β ->
    infinity is ``SoftSelection()``.

    >>> from outlearn.model import Ensemble
    >>> system, points = Gibbs().system(), Points.of(Ensemble(0.0, 10.0), 1.0)
    >>> float(np.abs(system.residual(points, system.starts(points)[0])).max()) < 1e-10
    True
    """

    beta: float = 1.0

    def __post_init__(self) -> None:
        permitted = "a finite number >= 1 (SoftSelection() is beta = infinity)"
        number("beta", self.beta, permitted, lambda x: 1.0 <= x < math.inf)

    def system(self) -> GibbsSystem:
        """Give the saddle-point system."""
        return GibbsSystem(float(self.beta))

    def limit(self, ensemble: Ensemble) -> Limit:
        """R_inf of soft selection; the sample's own spread adds α(Q - q) = R_inf/(βγ̃ p₁⟨σ⟩_(V=1)) to c."""
        cold = SoftSelection().limit(ensemble)
        R = cold.R_inf
        spread = R / (self.beta * ensemble.gamma_tilde) * math.exp(-log_averages(SIGMOID, ensemble, R)[1])
        return Limit(
            learner=self,
            ensemble=ensemble,
            R_inf=R,
            c=cold.c + spread,
            energy=cold.energy,
            residual=cold.residual,
            status=cold.status,
        )
