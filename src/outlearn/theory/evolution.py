"""State evolution: the overlap of approximate message passing, iteration by iteration, for infinite N."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from outlearn.model import Ensemble, angle
from outlearn.model.checks import count, number, positive
from outlearn.numerics.status import Status
from outlearn.theory.bayes import BayesOptimal
from outlearn.theory.bayes_averages import log_average, softplus
from outlearn.theory.system import Points

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["StateEvolution", "state_evolution"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StateEvolution:
    """Overlaps q_t = m_t·B/N = |m_t|²/N of the message-passing estimate m_t, for infinite N.

    Attributes
    ----------
    q : array (n_iter + 1,)
        The trajectory; ``q[0]`` is the start.
    fixed_point : float
        The root of the Bayes-optimal equation to which the trajectory runs.
    slope : float
        Contraction of the distance in logit q per iteration, at the fixed point; below 1.
    status : Status
    """

    ensemble: Ensemble
    alpha: float
    start: str | float
    q: NDArray[np.float64]
    fixed_point: float
    slope: float
    status: Status

    @property
    def n_iter(self) -> int:
        """Number of iterations made."""
        return self.q.size - 1

    @property
    def angle(self) -> NDArray[np.float64]:
        """Direction error Φ_t = arccos(√q_t)/π."""
        return np.asarray(angle(self.q, self.q))

    @property
    def distance(self) -> NDArray[np.float64]:
        """Δ_t = 1 - q_t."""
        return 1.0 - self.q

    def to_dict(self) -> dict[str, Any]:
        """Return the parameters, the last overlap and the fixed point."""
        return {
            **self.ensemble.to_dict(),
            "alpha": self.alpha,
            "start": self.start,
            "n_iter": self.n_iter,
            "q": float(self.q[-1]),
            "fixed_point": self.fixed_point,
            "slope": self.slope,
            "status": self.status.name,
        }

    def to_frame(self) -> pd.DataFrame:
        """Return one row per iteration."""
        import pandas as pd

        return pd.DataFrame(
            {"iteration": np.arange(self.q.size), "q": self.q, "angle": self.angle, "distance": self.distance}
        )

    def __repr__(self) -> str:
        return (
            f"StateEvolution(alpha={self.alpha:g}, eta={self.ensemble.eta:g}, gamma={self.ensemble.gamma:g}: "
            f"q {self.q[0]:.4g} -> {self.q[-1]:.6g} in {self.n_iter} iterations, "
            f"fixed point {self.fixed_point:.6g}, {self.status.name})"
        )


def state_evolution(
    ensemble: Ensemble,
    alpha: float,
    *,
    start: str | float = "uninformative",
    n_iter: int | None = None,
    tol: float = 1e-12,
) -> StateEvolution:
    """Iterate q_(t+1) = λ_t/(1 + λ_t), λ_t = α γ p₁ ⟨σ(γ q_t/2 - η + √(γ q_t) x)⟩ (Eq. B6).

    One step is one full iteration of AMP (responsibilities u from m_t, then m_(t+1) from u), that is one
    read of the data. ``start="uninformative"`` is m_0 = 0. Its first iteration gives every example the
    weight p₁, so that m_1 is Hebb's vector, scaled: ``start="hebb"`` begins there, at q = λ/(1 + λ) with λ
    = α γ p₁², and is the same trajectory one iteration later. ``start="informative"`` is m_0 = B (q = 1); a
    number is q_0 itself, of an estimate with m·B/N = |m|²/N. With ``n_iter=None`` it runs until ln(q/(1-q))
    moves by less than ``tol``.

    >>> state_evolution(Ensemble(4.0, 10.0), alpha=20.0)
    StateEvolution(alpha=20, eta=4, gamma=10: q 0 -> 0.541027 in ..., CONVERGED)
    >>> state_evolution(Ensemble(0.0, 10.0), alpha=1.0, n_iter=3).q.round(5)
    array([0.     , 0.71429, 0.81264, 0.81597])
    """
    points = Points.of(ensemble, positive("alpha", alpha))
    tol = positive("tol", tol)
    system = BayesOptimal().system()
    ts = np.unique(system.starts(points)[:, 0, 0])  # refuses a mismatched ensemble
    limit = 100_000 if n_iter is None else count("n_iter", n_iter)
    log_scale = math.log(points.alpha[0]) + math.log(ensemble.gamma) - softplus(ensemble.eta)

    def next_t(q: float) -> float:
        v = ensemble.gamma * q
        return log_scale + log_average(0, 0.5 * v - ensemble.eta, v, 0.0)

    if isinstance(start, str) and start == "hebb":
        t = next_t(0.0)
    else:
        words = {"uninformative": 0.0, "informative": 1.0}
        permitted = "'uninformative', 'hebb', 'informative' or a number in [0, 1]"
        q = words.get(start) if isinstance(start, str) else None
        t = _logit(number("start", start, permitted, lambda x: 0.0 <= x <= 1.0) if q is None else q)

    trajectory = [_expit(t)]
    status = Status.ITERATION_LIMIT
    for _ in range(limit):
        new = next_t(trajectory[-1])
        moved = abs(new - t)
        t = new
        trajectory.append(_expit(t))
        if moved <= tol * (1.0 + abs(t)):
            status = Status.CONVERGED
            if n_iter is None:
                break
    # The map rises, so the trajectory is monotone and ends at the first root on its way.
    rising = next_t(trajectory[0]) >= (-math.inf if trajectory[0] == 0.0 else _logit(trajectory[0]))
    first = _logit(trajectory[0])
    ahead = ts[ts >= first - 1e-9 * (1 + abs(first))] if rising else ts[ts <= first + 1e-9 * (1 + abs(first))]
    goal = float(ahead[0] if rising else ahead[-1]) if ahead.size else t
    slope = float(system.at_eigenvalue(points, np.array([[goal]]))[0])
    return StateEvolution(
        ensemble=ensemble,
        alpha=float(points.alpha[0]),
        start=start,
        q=np.array(trajectory),
        fixed_point=_expit(goal),
        slope=slope,
        status=status,
    )


def _expit(t: float) -> float:
    return 1.0 / (1.0 + math.exp(-t)) if t > -700.0 else 0.0


def _logit(q: float) -> float:
    if q <= 0.0:
        return -math.inf
    return math.inf if q >= 1.0 else math.log(q) - math.log1p(-q)
