"""What regularised empirical risk minimisation reaches on a contaminated mixture, for any convex loss.

The learner minimises sum_mu loss(s_mu (h_mu + c)) + λ |J|²/2 over J (and c), h = J·ξ/√N. With
w_k = v_k R + s_k c + √(Q/γ_k) x and t_k = z/γ_k the free energy per dimension is

    f(R, Q, z, c) = (R² - Q)/(2z) + λ Q/2 + α Σ_k π_k ⟨M(w_k; t_k)⟩                     (E1)

and with g = M' its stationarity reads, T = Q - R²,

    R = -z α Σ_k π_k v_k ⟨g⟩                                                            (E2)
    T = z² α Σ_k π_k ⟨g²⟩/γ_k                                                           (E3)
    1/z = λ + α Σ_k π_k ⟨x g⟩/√(γ_k Q)                                                  (E4)
    0 = Σ_k π_k s_k ⟨g⟩            (with an intercept)                                  (E5)

The residual is asinh R/√T - asinh (E2)/√T, ln T - ln (E3), ln z + ln (E4), and (E5) over the root mean
square of g.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import root
from scipy.special import ndtr

from outlearn.exceptions import ParameterError
from outlearn.model import Ensemble
from outlearn.model.checks import flag, positive
from outlearn.numerics.gaussian import gaussian_nodes
from outlearn.numerics.status import Status
from outlearn.theory.limit import Limit
from outlearn.theory.losses import Loss
from outlearn.theory.mixture import Component
from outlearn.theory.system import Points, System

__all__ = ["EmpiricalRisk", "EmpiricalRiskSystem"]

Array = NDArray[np.float64]

_WIDEST = 3.0
_WIDEST_UNKNOWN = 0.05  # panels for a loss that does not say where its prox has kinks


@dataclass(frozen=True, slots=True)
class _Averages:
    """Gaussian averages of one component: for the equations, their Jacobian and the stability number."""

    envelope: float
    g: float
    gg: float
    xg: float
    d: float  # ⟨g'⟩
    xd: float
    xxd: float
    gd: float
    xgd: float
    ggd: float
    dd: float


def _averages(loss: Loss, mean: float, spread: float, t: float, widest: float, order: int) -> _Averages:
    where = loss.breaks(t)
    finest = min(widest, _WIDEST_UNKNOWN) if where is None else widest
    x, weight = gaussian_nodes((np.array(where or ()) - mean) / spread, order=order, widest=finest)
    w = mean + spread * x
    g, d = loss.slope(w, t)
    u = w - t * g
    rows = np.stack(
        [
            loss.value(u) + 0.5 * t * g * g,
            g,
            g * g,
            x * g,
            d,
            x * d,
            x * x * d,
            g * d,
            x * g * d,
            g * g * d,
            d * d,
        ]
    )
    return _Averages(*(float(value) for value in rows @ weight))


def _population(loss: Loss, mean: float, spread: float, order: int) -> Array:
    """⟨loss⟩, ⟨loss'⟩, ⟨loss'²⟩, ⟨x loss'⟩ of a component: what is left of the averages when t -> 0."""
    where = loss.breaks(0.0)
    widest = _WIDEST_UNKNOWN if where is None else 0.5 * _WIDEST
    x, weight = gaussian_nodes((np.array(where or ()) - mean) / spread, order=order, widest=widest)
    w = mean + spread * x
    h = 1e-6 * (1.0 + np.abs(w))
    g = (loss.value(w + h) - loss.value(w - h)) / (2.0 * h)
    return np.stack([loss.value(w), g, g * g, x * g]) @ weight


@dataclass(frozen=True, slots=True)
class EmpiricalRiskSystem(System):
    """Eqs. E2-E5 in the coordinates (asinh R/√T, ln T, ln z[, c]): R may have any sign."""

    loss: Loss
    regularization: float
    components: tuple[Component, ...] | None
    intercept: bool
    order: int = 16

    lowest: ClassVar[float] = -1e9  # the intercept may be negative

    @property
    def names(self) -> tuple[str, ...]:  # type: ignore[override]
        """Names of the coordinates."""
        return ("asinh R/√(Q-R²)", "ln(Q-R²)", "ln z") + (("intercept",) if self.intercept else ())

    def _mixture(self, points: Points, k: int) -> tuple[tuple[float, float, float, int], ...]:
        if self.components is not None:
            return tuple((c.weight, c.overlap, c.precision, c.label) for c in self.components)
        gamma = float(points.gamma[k])
        return ((float(points.p0[k]), 0.0, gamma, 1), (float(points.p1[k]), 1.0, gamma, 1))

    def _terms(
        self, points: Points, k: int, v: Array, widest: float = _WIDEST
    ) -> list[tuple[float, float, float, int, float, float, _Averages]] | None:
        if not (np.isfinite(v).all() and abs(v[1]) < 300.0 and abs(v[2]) < 300.0 and abs(v[0]) < 300.0):
            return None
        T, z = math.exp(v[1]), math.exp(v[2])
        R = math.sinh(v[0]) * math.sqrt(T)
        Q, c = R * R + T, float(v[3]) if self.intercept else 0.0
        if not math.isfinite(Q):
            return None
        out = []
        for weight, overlap, gamma, label in self._mixture(points, k):
            if weight > 0.0:
                spread, t = math.sqrt(Q / gamma), z / gamma
                a = _averages(self.loss, overlap * R + label * c, spread, t, widest, self.order)
                out.append((weight, overlap, gamma, label, spread, t, a))
        return out

    def evaluate(self, points: Points, v: Array) -> tuple[Array, Array]:
        """Residual and Jacobian; the envelope obeys ∂g/∂t = -g g', which gives the derivatives in z."""
        return self._evaluate(points, v, _WIDEST)

    def _evaluate(self, points: Points, v: Array, widest: float) -> tuple[Array, Array]:
        n = len(self.names)
        residual, jacobian = np.full((len(v), n), np.nan), np.full((len(v), n, n), np.nan)
        for k in range(len(v)):
            terms = self._terms(points, k, v[k], widest)
            if terms is None:
                continue
            alpha = float(points.alpha[k])
            root_T, z = math.exp(0.5 * v[k, 1]), math.exp(v[k, 2])
            R = math.sinh(v[k, 0]) * root_T
            # derivatives of (R, ln Q, ln z, c) along the coordinates
            dR = np.array([math.cosh(v[k, 0]) * root_T, 0.5 * R, 0.0, 0.0])[:n]
            dlnQ = np.array([2.0 * math.tanh(v[k, 0]), 1.0, 0.0, 0.0])[:n]
            dlnz = np.array([0.0, 0.0, 1.0, 0.0])[:n]
            dc = np.array([0.0, 0.0, 0.0, 1.0])[:n]
            pull = square = stiffness = balance = power = 0.0
            d_pull, d_square, d_stiff, d_balance, d_power = (np.zeros(n) for _ in range(5))
            for weight, overlap, gamma, label, spread, t, a in terms:
                dm, ds, dt = overlap * dR + label * dc, 0.5 * spread * dlnQ, t * dlnz
                d_g = a.d * dm + a.xd * ds - a.gd * dt
                d_gg = 2.0 * (a.gd * dm + a.xgd * ds - a.ggd * dt)
                d_xg = a.xd * dm + a.xxd * ds - a.xgd * dt
                pull += weight * overlap * a.g
                d_pull += weight * overlap * d_g
                square += weight * a.gg / gamma
                d_square += weight * d_gg / gamma
                stiffness += weight * a.xg / (gamma * spread)
                d_stiff += weight * (d_xg - 0.5 * a.xg * dlnQ) / (gamma * spread)
                balance += weight * label * a.g
                d_balance += weight * label * d_g
                power += weight * a.gg
                d_power += weight * d_gg
            bracket = self.regularization + alpha * stiffness
            if not (square > 0.0 and bracket > 0.0):
                continue
            new_ratio = -z * alpha * pull / root_T
            residual[k, :3] = (
                v[k, 0] - math.asinh(new_ratio),
                v[k, 1] - math.log(z * z * alpha * square),
                v[k, 2] + math.log(bracket),
            )
            unit = np.eye(n)
            dlnT = unit[1]
            d_ratio = new_ratio * (dlnz - 0.5 * dlnT) - z * alpha / root_T * d_pull
            jacobian[k, 0] = unit[0] - d_ratio / math.hypot(1.0, new_ratio)
            jacobian[k, 1] = unit[1] - 2.0 * dlnz - d_square / square
            jacobian[k, 2] = unit[2] + alpha * d_stiff / bracket
            if self.intercept:
                residual[k, 3] = balance / math.sqrt(power)
                jacobian[k, 3] = (d_balance - 0.5 * balance / power * d_power) / math.sqrt(power)
        return residual, jacobian

    def free_energy(self, points: Points, v: Array) -> Array:
        """Eq. E1."""
        out = np.full(len(v), np.nan)
        for k in range(len(v)):
            terms = self._terms(points, k, v[k], 0.5 * _WIDEST)
            if terms is not None:
                T, z = math.exp(v[k, 1]), math.exp(v[k, 2])
                risk = sum(weight * a.envelope for weight, *_, a in terms)
                out[k] = (
                    -0.5 * T / z
                    + 0.5 * self.regularization * T * math.cosh(v[k, 0]) ** 2
                    + float(points.alpha[k]) * risk
                )
        return out

    def at_eigenvalue(self, points: Points, v: Array) -> Array:
        """α Σ π_k (z/γ_k)² ⟨g'²⟩; below 1 for every convex loss."""
        out = np.full(len(v), np.nan)
        for k in range(len(v)):
            terms = self._terms(points, k, v[k])
            if terms is not None:
                out[k] = float(points.alpha[k]) * sum(w * t * t * a.dd for w, *_, t, a in terms)
        return out

    def quadrature_error(self, points: Points, v: Array) -> Array:
        """Move of (R, Q) by one Newton step when the panels are halved."""
        residual, jacobian = self._evaluate(points, v, _WIDEST)
        fine, _ = self._evaluate(
            points, v, 0.5 * min(_WIDEST, _WIDEST_UNKNOWN if self._unknown() else _WIDEST)
        )
        out = np.full(len(v), np.nan)
        for k in range(len(v)):
            if np.isfinite(jacobian[k]).all():
                step = np.linalg.lstsq(jacobian[k], fine[k] - residual[k], rcond=None)[0]
                root_T = math.exp(0.5 * v[k, 1])
                R = math.sinh(v[k, 0]) * root_T
                d_R = math.cosh(v[k, 0]) * root_T * step[0] + 0.5 * R * step[1]
                out[k] = max(abs(d_R), abs(2.0 * R * d_R + root_T**2 * step[1]))
        return out

    def _unknown(self) -> bool:
        return self.loss.breaks(1.0) is None

    def order_parameters(self, points: Points, v: Array) -> dict[str, Array]:
        """R, Q = q, z; the intercept and the error on the mixture itself as further numbers."""
        with np.errstate(over="ignore", invalid="ignore"):
            T, z = np.exp(v[:, 1]), np.exp(v[:, 2])
            R = np.sinh(v[:, 0]) * np.sqrt(T)
            Q = R * R + T
            c = v[:, 3] if self.intercept else np.zeros(len(v))
            error = np.zeros(len(v))
            for k in range(len(v)):
                for weight, overlap, gamma, label in self._mixture(points, k):
                    error[k] += weight * ndtr(-(overlap * R[k] + label * c[k]) / np.sqrt(Q[k] / gamma))
        extra = {"intercept": c, "mixture_error": error}
        return {"R": R, "Q": Q, "q": Q, "z": z, **extra}

    def starts(self, points: Points) -> Array:
        """The solution of least squares with the same penalty (closed form), and z larger and smaller."""
        out = np.zeros((4, len(points), len(self.names)))
        for k in range(len(points)):
            alpha, lam = float(points.alpha[k]), self.regularization
            mixture = self._mixture(points, k)
            gamma = 1.0 / sum(weight / precision for weight, _, precision, _ in mixture)
            slope = lam * gamma + alpha - 1.0
            # positive root of λ z² + (λ γ + α - 1) z - γ = 0, without cancellation
            radical = math.sqrt(slope * slope + 4.0 * lam * gamma)
            z = 2.0 * gamma / (slope + radical) if slope > 0.0 else (radical - slope) / (2.0 * lam)
            gain = z * alpha * gamma / (gamma + z)
            first = sum(weight * overlap for weight, overlap, _, _ in mixture)
            second = sum(weight * overlap**2 for weight, overlap, _, _ in mixture)
            R = gain * first / (1.0 + gain * second)
            noise = gain * gain / (alpha * gamma)
            T = noise * (1.0 - 2.0 * R * first + R * R * second + R * R / gamma)
            T /= max(1.0 - noise / gamma, 1e-6)
            T = max(T, 1e-200)
            for i, shift in enumerate((0.0, 1.5, -1.5, 4.0)):
                out[i, k, :3] = math.asinh(R / math.sqrt(T)), math.log(T), math.log(z) + shift
        return out


@dataclass(frozen=True, slots=True)
class EmpiricalRisk:
    """Minimise sum loss(margin) + regularization |J|²/2: ridge, logistic, support vectors, your own.

    Parameters
    ----------
    loss : Loss
        ``Square()``, ``Logistic()``, ``Hinge()``, ``SquaredHinge()``, ``Huber(delta)`` or a subclass of
        ``Loss``.
    regularization : float
        λ > 0. For J = √N w it is |w|² times λ N/2: scikit-learn's C is 1/(λ N), with fields ξ·w = ξ·J/√N.
    components : tuple of Component, optional
        The data; the paper's two components, read off the ensemble, when left out.
    intercept : bool
        Optimise an intercept along, as unequal classes need. It is not penalised.

    The learner has no belief about γ or η, so a mismatched ensemble is the same to it as a matched one.

    >>> from outlearn.model import Ensemble
    >>> from outlearn.theory.losses import Square
    >>> learner = EmpiricalRisk(Square(), regularization=1.0)
    >>> system, points = learner.system(), Points.of(Ensemble(0.0, 10.0), 5.0)
    >>> float(np.abs(system.residual(points, system.starts(points)[0])).max()) < 1e-12
    True
    """

    loss: Loss
    regularization: float
    components: tuple[Component, ...] | None = None
    intercept: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.loss, Loss):
            raise ParameterError("loss", self.loss, "an instance of outlearn.theory.losses.Loss")
        positive("regularization", self.regularization)
        flag("intercept", self.intercept)
        if self.components is not None:
            several = tuple(self.components) if isinstance(self.components, Iterable) else ()
            if not several or not all(isinstance(c, Component) for c in several):
                raise ParameterError("components", self.components, "one Component or more")
            object.__setattr__(self, "components", several)
            total = sum(c.weight for c in self.components)
            if abs(total - 1.0) > 1e-9:
                raise ParameterError(
                    "components", f"weights that sum to {total:.12g}", "weights that sum to 1"
                )
            if self.intercept and len({c.label for c in self.components if c.weight > 0.0}) < 2:
                raise ParameterError("components", "one label only", "both labels, to fit an intercept")
        elif self.intercept:
            raise ParameterError(
                "intercept", True, "used with components, e.g. contaminated(ensemble, positive=0.3)"
            )

    def system(self) -> EmpiricalRiskSystem:
        """Give the saddle-point system."""
        return EmpiricalRiskSystem(self.loss, float(self.regularization), self.components, self.intercept)

    def limit(self, ensemble: Ensemble) -> Limit:
        """Minimiser of the expected loss, and the noise about it, c = ⟨g²/γ⟩/⟨M''/γ⟩² (Eqs. E8-E9)."""
        system = self.system()
        mixture = [m for m in system._mixture(Points.of(ensemble, 1.0), 0) if m[0] > 0.0]

        def terms(u: Array) -> list[tuple[float, float, float, int, float, Array]]:
            R, c = math.exp(min(u[0], 300.0)), float(u[1]) if self.intercept else 0.0
            out = []
            for weight, overlap, gamma, label in mixture:
                spread = R / math.sqrt(gamma)
                found = _population(self.loss, overlap * R + label * c, spread, system.order)
                out.append((weight, overlap, gamma, label, spread, found))
            return out

        def gradient(u: Array) -> Array:
            found = terms(u)
            by_R = sum(w * (v * a[1] + a[3] / math.sqrt(gamma)) for w, v, gamma, _, _, a in found)
            by_c = sum(w * s * a[1] for w, _, _, s, _, a in found)
            return np.array([by_R, by_c][: len(u)])

        solved = root(gradient, np.zeros(2 if self.intercept else 1), tol=1e-13)
        found = terms(solved.x)
        square = sum(w * a[2] / gamma for w, _, gamma, _, _, a in found)
        stiffness = sum(w * a[3] / (gamma * spread) for w, _, gamma, _, spread, a in found)
        residual = float(np.abs(solved.fun).max())
        accurate = residual < (1e-5 if self.loss.breaks(1.0) is None else 1e-8)
        exists = accurate and abs(solved.x[0]) < 25.0 and stiffness > 0.0
        return Limit(
            learner=self,
            ensemble=ensemble,
            R_inf=math.exp(solved.x[0]) if exists else math.nan,
            c=square / stiffness**2 if exists else math.inf,
            energy=sum(w * a[0] for w, *_, a in found) if exists else math.nan,
            residual=residual,
            status=Status.CONVERGED if exists else Status.NO_SOLUTION,
        )
