"""What a learner must say about itself so that the engine can solve it: the saddle-point system.

Everything that solves (``solve``, ``branches``, ``follow``, ``transitions``, ``phase_diagram``)
is written once, over this protocol. A system is stateless and works on many points at a time: row k of ``v``
belongs to row k of ``points``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from outlearn.exceptions import ParameterError
from outlearn.model import Ensemble
from outlearn.model.checks import choice, is_positive, numbers
from outlearn.model.ensemble import checked_ensemble

if TYPE_CHECKING:
    from outlearn.theory.limit import Limit

__all__ = ["Explicit", "Learner", "Points", "System", "system_of"]

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Points:
    """Many (ensemble, alpha) at once: arrays of equal length, one entry per point.

    >>> p = Points.of(Ensemble(eta=0.0, gamma=10.0), alpha=[1.0, 2.0])
    >>> len(p), p.p1, p.take([1]).alpha
    (2, array([0.5, 0.5]), array([2.]))
    """

    alpha: Array
    eta: Array
    gamma: Array
    gamma_tilde: Array
    eta_tilde: Array

    @classmethod
    def of(cls, ensemble: Ensemble, alpha: ArrayLike) -> Points:
        """The points of one ensemble at one or many alpha, which must be positive and finite."""
        checked_ensemble(ensemble)
        alphas = numbers("alpha", alpha, "a finite number > 0", is_positive)
        return cls(alpha=alphas, **{k: np.full(alphas.size, x) for k, x in ensemble.to_dict().items()})

    @property
    def p1(self) -> Array:
        """Fraction of informative examples."""
        return expit(-self.eta)

    @property
    def p0(self) -> Array:
        """Fraction of outliers."""
        return expit(self.eta)

    def __len__(self) -> int:
        return self.alpha.size

    def take(self, index: ArrayLike) -> Points:
        """Some of the points, in the order (and as often as) ``index`` names them."""
        i = np.asarray(index)
        return Points(**{f.name: getattr(self, f.name)[i] for f in fields(self)})

    def shifted(self, over: str, value: ArrayLike) -> Points:
        """The same points with one parameter set to ``value``; a matched belief follows the truth."""
        choice("over", over, ("alpha", "eta", "gamma", "eta_tilde", "gamma_tilde"))
        new = {f.name: getattr(self, f.name) for f in fields(self)}
        values = np.broadcast_to(np.asarray(value, dtype=np.float64), self.alpha.shape).copy()
        if over in ("eta", "gamma"):
            belief = f"{over}_tilde"
            new[belief] = np.where(new[belief] == new[over], values, new[belief])
        new[over] = values
        return Points(**new)

    def ensemble(self, k: int) -> Ensemble:
        """The ensemble of point k."""
        return Ensemble(
            float(self.eta[k]), float(self.gamma[k]), float(self.gamma_tilde[k]), float(self.eta_tilde[k])
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Explicit:
    """A solution known without solving (the trivial branch, a closed form), at the points where ``exists``.

    ``order_parameters`` has arrays for "R", "Q", "q", "z" and possibly "Q_hat", as in ``System``.
    """

    branch: str
    exists: NDArray[np.bool_]
    order_parameters: Mapping[str, Array]
    free_energy: Array
    at_eigenvalue: Array
    stable_under_iteration: bool = True


class System(ABC):
    """Saddle-point equations in unconstrained coordinates v, for many points at once.

    Shapes: ``points`` has K entries, ``v`` is (K, n) with n = ``len(names)``. Coordinates are chosen so that
    every v in R^n is admissible (for example v = (ln R, ln(Q - R²), ln z)), and the residual so that it is
    dimensionless and of the form ``v - F(v)`` to first order (the engine judges convergence on it and falls
    back on the damped iteration ``v <- v - residual/2``). Its zeros are the stationary points of
    ``free_energy``: the tests check that by numerical derivative. Evaluate must not raise for bad v: rows
    that cannot be evaluated get ``nan``.
    """

    names: ClassVar[tuple[str, ...]]
    """Names of the coordinates, such as ("ln R", "ln(Q-R²)", "ln z")."""

    orientation: ClassVar[int] = 0
    """Sign of det(jacobian) at solutions where the damped iteration is stable (+1 or -1).

    The signs of all solutions of one point, explicit ones included, then sum to one stable solution; the
    search uses that to notice a solution that it missed. 0 if nothing is known of the sign.
    """

    counted: ClassVar[bool] = True
    """Whether that sum holds: not where solutions are lost because the equations end."""

    lowest: ClassVar[float] = -200.0
    """A branch is said to vanish where a coordinate falls below this."""

    @abstractmethod
    def evaluate(self, points: Points, v: Array) -> tuple[Array, Array]:
        """Residual (K, n) and its exact Jacobian (K, n, n)."""

    @abstractmethod
    def free_energy(self, points: Points, v: Array) -> Array:
        """f at any v (K,), stationary exactly at the zeros of the residual."""

    @abstractmethod
    def order_parameters(self, points: Points, v: Array) -> dict[str, Array]:
        """Arrays (K,) for "R", "Q", "q" and, where they exist, "z", "Q_hat"; other names become details."""

    @abstractmethod
    def starts(self, points: Points) -> Array:
        """Starting coordinates (S, K, n), rich enough that Newton from them finds every branch."""

    def grid(self, points: Points) -> Array:
        """A dense net of starts (S, K, n) for points where ``starts`` missed a solution."""
        return self.starts(points)

    @abstractmethod
    def at_eigenvalue(self, points: Points, v: Array) -> Array:
        """De Almeida-Thouless number (K,): stable iff < 1; inf where a prox jumps; nan if not defined."""

    @abstractmethod
    def quadrature_error(self, points: Points, v: Array) -> Array:
        """Change (K,) of R and Q (the larger) that a finer quadrature makes, at a solution v."""

    def explicit(self, points: Points) -> tuple[Explicit, ...]:
        """Solutions that coordinates cannot represent (R = Q = 0) or that are known in closed form."""
        return ()

    def refined(self) -> System:
        """The same equations with twice the quadrature resolution, for error estimates; itself if exact."""
        return self

    def undefined(self, points: Points, v: Array) -> NDArray[np.bool_]:
        """Rows where the equations do not exist at v (status NOT_DEFINED)."""
        return np.zeros(len(v), dtype=bool)

    # single-point conveniences, for tests, notebooks and error messages
    def residual(self, points: Points, v: Array) -> Array:
        """The residual alone."""
        return self.evaluate(points, v)[0]

    def jacobian(self, points: Points, v: Array) -> Array:
        """The Jacobian alone."""
        return self.evaluate(points, v)[1]


@runtime_checkable
class Learner(Protocol):
    """A rule of learning: a frozen dataclass that knows its saddle-point system."""

    def system(self) -> System:
        """The equations; cheap, stateless."""
        ...

    def limit(self, ensemble: Ensemble) -> Limit:
        """What is left of the solution when alpha -> infinity."""
        ...


def system_of(learner: Learner) -> System:
    """The equations of a learner, or an error that says what a learner is."""
    if isinstance(learner, type) or not isinstance(learner, Learner):
        raise ParameterError("learner", learner, "a learner, such as SoftSelection()")
    return learner.system()
