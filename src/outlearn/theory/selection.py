"""The saddle point shared by soft selection, hard selection and the Hebb rule: one system, another envelope.

Unknowns are logarithms, so that R > 0, Q > R² and z > 0 always hold and tiny solutions keep their accuracy:
``v = (ln R, ln(Q - R²), ln z)``, and ``ln Q_hat`` for hard selection. With ``a = m_V + sd x``,

    m_V = g R V - g Q/2 - eta - kappa,   sd = g sqrt(Q/gamma),   b = g² z/gamma      (g: the learner's gamma)
    kappa = g / (2 (g Q_hat + 1)) for hard selection, else 0

and ``G_V = <L(m_V + sd x; b)>`` the free energy is

    f = (R² - Q)/(2z) + Q/2 - alpha sum_V p_V G_V  [+ ln(g Q_hat + 1)/2 - kappa Q_hat]

Its stationarity, written in relative form, is the residual:

    r_R = ln R        - ln( z alpha g p_1 <L_a>_{V=1} )
    r_T = ln(Q - R²)  - ln( z² alpha (g²/gamma) sum_V p_V <2 L_b> )
    r_z = 1 - z [ 1 + alpha g sum_V p_V ( <L_a> - <x L_a>/sqrt(gamma Q) ) ]
    r_s = ln Q_hat    - ln( alpha sum_V p_V <L_a> )
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.special import expit, ndtr

from outlearn.numerics.gaussian import legendre_rule
from outlearn.theory.selection_averages import EXACT_SOFT, HARD, HEBB, averages
from outlearn.theory.system import Explicit, Points, System

__all__ = ["HardSystem", "SelectionSystem"]

Array = NDArray[np.float64]

_ORDER = 16
_THREADS = 2
_TINY = 1e-290
# overlap, length and response of solutions that neither an oracle nor a collapse resembles
_GUESSES = np.array(
    [
        (0.02, 0.9, 0.5),
        (0.02, 0.4, 1.2),
        (0.3, 0.8, 0.4),
        (0.6, 0.8, 0.35),
        (0.9, 0.9, 0.15),
        (0.3, 0.003, 1.05),
        (0.03, 0.03, 1.15),
        (0.005, 0.15, 1.2),
    ]
).T
# overlap, gamma Q and b where the noise of the examples that were chosen holds J up
_GLASSY = np.array([(0.02, 8.0, 0.2), (0.003, 20.0, 6.0), (0.02, 10.0, 6.0), (0.5, 10.0, 5.0)]).T
# a net over overlap, length and response, where these starts are not enough
_NET_COSINES = (1e-6, 1e-3, 0.03, 0.2, 0.5, 0.8, 0.95, 0.995)
_NET_LEVELS = (1e-12, 1e-6, 1e-3, 0.03, 0.2, 0.6, 1.0, 1.6)
_NET_RESPONSES = (1e-4, 1e-2, 0.1, 0.4, 0.8, 1.2, 5.0)


@njit(cache=True, nogil=True)
def _rows(rule, rate, alpha, eta, gamma, gt, eta_t, v, nodes, weights, pieces, fully, res, jac, f, at):  # type: ignore[no-untyped-def]
    """Residual, Jacobian, free energy and stability of every row (see the module's formulas)."""
    hard = rule == HARD
    n = 4 if hard else 3
    g = np.empty((2, 11))
    share = np.empty(2)
    dm, dsd, db = np.empty((2, 4)), np.empty(4), np.empty(4)
    for row in range(v.shape[0]):
        R, T, z = math.exp(v[row, 0]), math.exp(v[row, 1]), math.exp(v[row, 2])
        Q = R * R + T
        gm, sd, b = gt[row], gt[row] * math.sqrt(Q / gamma[row]), gt[row] ** 2 * z / gamma[row]
        Q_hat = math.exp(v[row, 3]) if hard else 0.0
        kappa = 0.5 * gm / (gm * Q_hat + 1.0) if hard else 0.0
        everything = eta_t[row] == -math.inf
        doubt = 0.0 if everything or rule == HEBB else eta_t[row]
        share[1] = 1.0 / (1.0 + math.exp(eta[row]))
        share[0] = 1.0 / (1.0 + math.exp(-eta[row]))
        bad = not (Q < 1e200 and sd > 0.0 and z < 1e200 and z > 1e-200)
        for V in range(2):
            if share[V] > 0.0 and not bad:
                m = gm * R * V - 0.5 * gm * Q - doubt - kappa
                averages(rule, m, sd, b, rate, everything, pieces, fully, nodes, weights, g[V])
            else:
                g[V] = 0.0
        level = share[0] * g[0, 1] + share[1] * g[1, 1]
        square = share[0] * g[0, 3] + share[1] * g[1, 3]
        spread = (share[0] * g[0, 4] + share[1] * g[1, 4]) * gm / gamma[row]
        if bad or not (level > _TINY and square > _TINY and g[1, 1] > _TINY and share[1] > _TINY):
            res[row] = np.nan
            jac[row] = np.nan
            f[row] = np.nan
            at[row] = np.nan
            continue
        value = share[0] * g[0, 0] + share[1] * g[1, 0]
        f[row] = -0.5 * T / z + 0.5 * Q - alpha[row] * value
        if hard:
            f[row] += 0.5 * math.log1p(gm * Q_hat) - kappa * Q_hat
        at[row] = alpha[row] * b * b * (share[0] * g[0, 10] + share[1] * g[1, 10])

        pull = alpha[row] * gm
        bracket = 1.0 + pull * (level - spread)
        res[row, 0] = v[row, 0] - v[row, 2] - math.log(pull * share[1] * g[1, 1])
        res[row, 1] = v[row, 1] - 2.0 * v[row, 2] - math.log(2.0 * pull * gm / gamma[row] * square)
        res[row, 2] = 1.0 - z * bracket
        if hard:
            res[row, 3] = v[row, 3] - math.log(alpha[row] * level)

        # derivatives of m_V, sd, b along the coordinates
        dQ0, dQ1 = 2.0 * R * R, T
        for V in range(2):
            dm[V, 0] = gm * R * V - 0.5 * gm * dQ0
            dm[V, 1] = -0.5 * gm * dQ1
            dm[V, 2] = 0.0
            dm[V, 3] = kappa * gm * Q_hat / (gm * Q_hat + 1.0)
        dsd[0], dsd[1], dsd[2], dsd[3] = 0.5 * sd * dQ0 / Q, 0.5 * sd * dQ1 / Q, 0.0, 0.0
        db[0], db[1], db[2], db[3] = 0.0, 0.0, b, 0.0
        for i in range(n):
            d_level = d_square = d_spread = d_signal = 0.0
            for V in range(2):
                d1 = g[V, 4] * dm[V, i] + g[V, 5] * dsd[i] + g[V, 7] * db[i]
                d3 = g[V, 7] * dm[V, i] + g[V, 8] * dsd[i] + g[V, 9] * db[i]
                d4 = (g[V, 5] * dm[V, i] + (g[V, 6] - g[V, 4]) * dsd[i] + g[V, 8] * db[i]) / sd
                d_level += share[V] * d1
                d_square += share[V] * d3
                d_spread += share[V] * d4 * gm / gamma[row]
                d_signal = d1  # V = 1 is last
            jac[row, 0, i] = (i == 0) - (i == 2) - d_signal / g[1, 1]
            jac[row, 1, i] = (i == 1) - 2.0 * (i == 2) - d_square / square
            jac[row, 2, i] = -z * ((i == 2) * bracket + pull * (d_level - d_spread))
            if hard:
                jac[row, 3, i] = (i == 3) - d_level / level


class SelectionSystem(System):
    """The equations of this module's docstring for one envelope."""

    names: ClassVar[tuple[str, ...]] = ("ln R", "ln(Q-R²)", "ln z")
    rule: ClassVar[int] = EXACT_SOFT
    rate: ClassVar[float] = 0.5
    softness: ClassVar[float] = 1.702
    """Width of the normal distribution function that the rule's weight of an example resembles."""

    orientation: ClassVar[int] = -1

    def __init__(self, pieces: int = 1) -> None:
        self.pieces = pieces

    def refined(self) -> SelectionSystem:
        """The same equations with every quadrature panel halved."""
        return type(self)(2 * self.pieces)

    def _run(self, points: Points, v: Array, *, fully: bool = False) -> tuple[Array, Array, Array, Array]:
        v = np.ascontiguousarray(v, dtype=np.float64)
        k, n = v.shape
        out = np.empty((k, n)), np.empty((k, n, n)), np.empty(k), np.empty(k)
        nodes, weights = legendre_rule(_ORDER)

        def work(part: slice) -> None:
            fixed = (points.alpha, points.eta, points.gamma, points.gamma_tilde, points.eta_tilde)
            _rows(
                self.rule,
                self.rate,
                *(x[part] for x in fixed),
                v[part],
                nodes,
                weights,
                self.pieces,
                fully,
                *(x[part] for x in out),
            )

        if k < 64:
            work(slice(0, k))
        else:  # the kernel releases the interpreter, so plain threads share the rows
            size = max(32, math.ceil(k / (4 * _THREADS)))
            with ThreadPoolExecutor(_THREADS) as pool:
                list(pool.map(work, [slice(i, min(i + size, k)) for i in range(0, k, size)]))
        return out

    def evaluate(self, points: Points, v: Array) -> tuple[Array, Array]:
        """Residual and exact Jacobian (the Hessian's boundary terms included)."""
        residual, jacobian, _, _ = self._run(points, v)
        return residual, jacobian

    def free_energy(self, points: Points, v: Array) -> Array:
        """f(R, Q, z) of the module's docstring."""
        return self._run(points, v, fully=True)[2]

    def at_eigenvalue(self, points: Points, v: Array) -> Array:
        """alpha b² <(L_aa)²>: the solution is stable iff it is below 1; infinite where the prox jumps."""
        return self._run(points, v, fully=True)[3]

    def quadrature_error(self, points: Points, v: Array) -> Array:
        """Move of (R, Q) by one Newton step with every panel halved, and the error of f with it."""
        residual, jacobian, _, _ = self._run(points, v)
        fine = self.refined().residual(points, v)
        with np.errstate(all="ignore"):
            step = np.full_like(v, np.nan)
            for k in range(len(v)):
                try:
                    step[k] = np.linalg.solve(jacobian[k], fine[k] - residual[k])
                except np.linalg.LinAlgError:
                    continue
            R, T = np.exp(v[:, 0]), np.exp(v[:, 1])
            change_R = np.abs(R * step[:, 0])
            return np.maximum(change_R, np.abs(2.0 * R * R * step[:, 0] + T * step[:, 1]))

    def order_parameters(self, points: Points, v: Array) -> dict[str, Array]:
        """R, Q = q and z."""
        with np.errstate(over="ignore"):
            R, T, z = np.exp(v[:, 0]), np.exp(v[:, 1]), np.exp(v[:, 2])
        return {"R": R, "Q": R * R + T, "q": R * R + T, "z": z}

    def starts(self, points: Points) -> Array:
        """An oracle of the informative examples, Hebb, collapsed and glassy guesses, :meth:`plentiful`."""
        gt, gamma, alpha = points.gamma_tilde, points.gamma, points.alpha
        prior = expit(-points.eta_tilde)
        # no doubt at all: the informative examples weigh 1, all weigh 1, all weigh what the prior says
        informative, one = alpha * points.p1, np.ones_like(alpha)
        used, weight = np.array([informative, alpha, alpha]), np.array([one, one, prior])
        z = 1.0 / (1.0 + used * gt * weight)
        certain = z * gt * informative * weight, used * (z * gt * weight) ** 2 / gamma, z, used * weight
        cosine, Q, response = _GUESSES[:, :, None]
        shrink = 1.0 / (1.0 + gt * informative)
        hazy = self._guess(points, cosine, Q, np.maximum(response * np.minimum(1.0, gamma / gt), shrink))
        cosine, level, b = _GLASSY[:, :, None]
        glassy = self._guess(points, cosine, level / gamma, b * gamma / gt**2)
        rows = np.concatenate([certain, hazy, glassy], axis=1)[: len(self.names)]
        known = np.log(np.maximum(rows, 1e-250)).transpose(1, 2, 0)
        return np.concatenate([known, self.plentiful(points)])

    def plentiful(self, points: Points) -> Array:
        """Solutions where examples are plentiful, Q = R² and b -> 0: up to three roots R of one equation.

        ``p_1 H_1 = R sum_V p_V (H_V - (g/gamma) h_V)``, with the weight of an example taken for a normal
        distribution function of its field: ``H_V = Phi_N(m_V/s)``, ``h_V = phi(m_V/s)/s``,
        ``s² = sd² + softness²``.
        """
        g, gamma = points.gamma_tilde, points.gamma
        doubt = np.where(np.isfinite(points.eta_tilde), points.eta_tilde, -700.0)
        R = np.geomspace(1e-3, 60.0, 67)[:, None] * np.maximum(1.0, 1.0 / np.sqrt(gamma))

        def at(R: Array) -> tuple[Array, Array, Array]:
            signal = level = bend = np.zeros_like(R)
            s = np.hypot(g * R / np.sqrt(gamma), self.softness)
            for V, share in enumerate((points.p0, points.p1)):
                t = (g * R * V - 0.5 * g * R * R - doubt) / s
                signal = share * ndtr(t)
                level = level + signal
                bend = bend + share * np.exp(-0.5 * t * t) / (math.sqrt(2.0 * math.pi) * s)
            return signal, level, level - g / gamma * bend

        with np.errstate(all="ignore"):
            signal, _, stiffness = at(R)
            gap = signal - R * stiffness
            turns = (gap[1:] > 0.0) != (gap[:-1] > 0.0)
            rank, column, rows = np.cumsum(turns, axis=0), np.arange(len(points)), []
            for k in (1, 2, 3):
                here = turns & (rank == k)
                i = np.argmax(here, axis=0)
                root = np.where(here.any(axis=0), np.sqrt(R[i, column] * R[i + 1, column]), np.nan)
                signal, level, _ = at(root)
                z = root / (points.alpha * g * signal)
                T = z * z * points.alpha * g * g / gamma * level
                root = np.where(root * root > T, root, np.nan)  # examples are not plentiful
                rows.append(np.log([root, T, z, points.alpha * level])[: len(self.names)].T)
        return np.stack(rows)

    @staticmethod
    def _guess(points: Points, cosine: Array, Q: Array, z: Array) -> Array:
        """R, Q - R², z and Q_hat (4, S, K) of guessed overlaps, lengths and responses.

        Q - R² = z² (g²/gamma) Q_hat ties the number of selected examples to the other three.
        """
        T = Q * (1.0 - cosine**2)
        Q_hat = np.minimum(T * points.gamma / (z * points.gamma_tilde) ** 2, 0.9 * points.alpha)
        return np.array(np.broadcast_arrays(cosine * np.sqrt(Q), T, z, Q_hat))

    def grid(self, points: Points) -> Array:
        """A net over overlap, length and response."""
        net = np.meshgrid(_NET_COSINES, _NET_LEVELS, _NET_RESPONSES, indexing="ij")
        cosine, level, z = (x.reshape(-1, 1) for x in net)
        rows = self._guess(points, cosine, level * np.maximum(1.0, 10.0 / points.gamma), z)
        rows[3] = np.maximum(rows[3], 1e-12 * points.alpha)
        return np.log(rows[: len(self.names)]).transpose(1, 2, 0)


class HardSystem(SelectionSystem):
    """``L(a; b) = max(0, a + b/2)`` with the penalty kappa of the selected number, a fourth unknown."""

    names: ClassVar[tuple[str, ...]] = ("ln R", "ln(Q-R²)", "ln z", "ln Q_hat")
    rule: ClassVar[int] = HARD
    softness: ClassVar[float] = 0.0
    lowest: ClassVar[float] = -60.0

    def order_parameters(self, points: Points, v: Array) -> dict[str, Array]:
        """R, Q = q, z and Q_hat."""
        with np.errstate(over="ignore"):
            return super().order_parameters(points, v) | {"Q_hat": np.exp(v[:, 3])}

    def onset(self, points: Points) -> Array:
        """The eta above which selecting nothing is self-consistent: -g/2 + rate g²/gamma."""
        return -0.5 * points.gamma_tilde + self.rate * points.gamma_tilde**2 / points.gamma

    def starts(self, points: Points) -> Array:
        """The shared ones, and up to three solutions without overlap, from one equation in the threshold c.

        At R = 0 an example is selected iff x > c, so that ``Q_hat = alpha Phi_N(-c)``,
        ``z = (1 + alpha phi(c)/sqrt(2 rate Q_hat))/(1 + g Q_hat)`` and ``Q = 2 rate z² (g²/gamma) Q_hat`` are
        explicit, and ``c g sqrt(Q/gamma) = eta + kappa + g Q/2 - rate b`` is left: solved on a grid, from
        few selected examples on.
        """
        c = np.linspace(11.0, -6.0, 137)[:, None]
        g, gain = points.gamma_tilde, points.gamma_tilde**2 / points.gamma

        def at(c: Array) -> tuple[Array, Array, Array]:
            Q_hat = points.alpha * ndtr(-c)
            density = points.alpha * np.exp(-0.5 * c * c) / math.sqrt(2.0 * math.pi)
            z = (1.0 + density / np.sqrt(2.0 * self.rate * Q_hat)) / (1.0 + g * Q_hat)
            return 2.0 * self.rate * z * z * gain * Q_hat, z, Q_hat

        with np.errstate(all="ignore"):
            Q, z, Q_hat = at(c)
            kappa = 0.5 * g / (1.0 + g * Q_hat)
            gap = c * np.sqrt(gain * Q) - points.eta_tilde - kappa - 0.5 * g * Q + self.rate * gain * z
            turns = (gap[1:] > 0.0) != (gap[:-1] > 0.0)
            rank = np.cumsum(turns, axis=0)
            rows = []
            for k in (1, 2, 3):
                here = turns & (rank == k)
                i, column = np.argmax(here, axis=0), np.arange(len(points))
                weight = gap[i, column] / (gap[i, column] - gap[i + 1, column])
                threshold = np.where(here.any(axis=0), c[i, 0] + weight * (c[i + 1, 0] - c[i, 0]), np.nan)
                Q_k, z_k, Q_hat_k = at(threshold)
                R = np.minimum(z_k * points.p1 * g * Q_hat_k, 0.5 * np.sqrt(Q_k))
                rows.append(np.stack([np.log(x) for x in (R, Q_k - R * R, z_k, Q_hat_k)], axis=1))
        return np.concatenate([super().starts(points), np.stack(rows)])

    def explicit(self, points: Points) -> tuple[Explicit, ...]:
        """R = Q = Q_hat = 0, z = 1 and f = 0, above the onset."""
        zero = np.zeros(len(points))
        return (
            Explicit(
                branch="trivial",
                exists=points.eta_tilde > self.onset(points),
                order_parameters={"R": zero, "Q": zero, "q": zero, "z": zero + 1.0, "Q_hat": zero},
                free_energy=zero,
                at_eigenvalue=zero,
            ),
        )
