"""The ensemble: how informative examples and outliers are drawn, and what the learner assumes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from scipy.special import expit

from outlearn.exceptions import ParameterError
from outlearn.model.checks import chemical_potential, number, positive

__all__ = ["Ensemble", "checked_ensemble"]


@dataclass(frozen=True, slots=True)
class Ensemble:
    """Two clusters at ±B/√N with variance 1/γ, mixed with label-free garbage (Eqs. distexam, distv).

    Parameters
    ----------
    eta : float
        Chemical potential of the informative examples; their fraction is 1/(1 + e^η).
        ``-inf`` means no outliers.
    gamma : float
        Inverse variance of every cluster, > 0.
    gamma_tilde, eta_tilde : float, optional
        What the learner believes of ``gamma`` and ``eta``; the truth when left out.

    Examples
    --------
    >>> e = Ensemble(eta=0.0, gamma=10.0)
    >>> e.informative_fraction
    0.5
    >>> Ensemble.from_contamination(0.8, gamma=10.0)
    Ensemble(eta=1.3862943611198908, gamma=10.0)
    """

    eta: float
    gamma: float
    gamma_tilde: float = None  # type: ignore[assignment]  # resolved in __post_init__
    eta_tilde: float = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        for name, permitted in (("eta", chemical_potential), ("gamma", positive)):
            truth = permitted(name, getattr(self, name))
            object.__setattr__(self, name, truth)
            belief = getattr(self, f"{name}_tilde")
            belief = truth if belief is None else permitted(f"{name}_tilde", belief)
            object.__setattr__(self, f"{name}_tilde", belief)

    @classmethod
    def from_contamination(
        cls,
        contamination: float,
        gamma: float,
        gamma_tilde: float | None = None,
        eta_tilde: float | None = None,
    ) -> Ensemble:
        """Build the ensemble whose outlier fraction is ``contamination``, in [0, 1)."""
        value = number("contamination", contamination, "0 <= contamination < 1", lambda x: 0.0 <= x < 1.0)
        eta = math.log(value) - math.log1p(-value) if value > 0.0 else -math.inf
        return cls(eta, gamma, gamma_tilde, eta_tilde)  # type: ignore[arg-type]

    @property
    def informative_fraction(self) -> float:
        """p1 = 1/(1 + e^η), the probability that an example carries information."""
        return float(expit(-self.eta))

    @property
    def outlier_fraction(self) -> float:
        """p0 = 1 - p1, the probability that an example is garbage."""
        return float(expit(self.eta))

    @property
    def matched(self) -> bool:
        """Whether the learner knows the true parameters."""
        return self.gamma_tilde == self.gamma and self.eta_tilde == self.eta

    def replace(self, **changes: Any) -> Ensemble:
        """Return a copy with some parameters changed; a matched belief follows the truth.

        >>> Ensemble(0.0, 10.0).replace(gamma=5.0).gamma_tilde
        5.0
        """
        unknown = set(changes) - {"eta", "gamma", "gamma_tilde", "eta_tilde"}
        if unknown:
            raise TypeError(f"Ensemble has no parameter {sorted(unknown)[0]!r}")
        values: dict[str, Any] = {"eta": self.eta, "gamma": self.gamma}
        for name in ("eta", "gamma"):
            tilde = f"{name}_tilde"
            values[tilde] = None if getattr(self, tilde) == getattr(self, name) else getattr(self, tilde)
        return Ensemble(**(values | changes))

    def to_dict(self) -> dict[str, float]:
        """Return the four parameters as plain numbers."""
        return {
            "eta": self.eta,
            "gamma": self.gamma,
            "gamma_tilde": self.gamma_tilde,
            "eta_tilde": self.eta_tilde,
        }

    def __repr__(self) -> str:
        parts = [f"eta={self.eta!r}", f"gamma={self.gamma!r}"]
        if self.gamma_tilde != self.gamma:
            parts.append(f"gamma_tilde={self.gamma_tilde!r}")
        if self.eta_tilde != self.eta:
            parts.append(f"eta_tilde={self.eta_tilde!r}")
        return f"Ensemble({', '.join(parts)})"


def checked_ensemble(value: object) -> Ensemble:
    """The ensemble itself, or an error that names the argument."""
    if not isinstance(value, Ensemble):
        raise ParameterError("ensemble", value, "an outlearn.model.Ensemble")
    return value
