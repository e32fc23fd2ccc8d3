"""The ensemble: how informative examples and outliers are drawn, and what the learner assumes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from scipy.special import expit

from outlearn.exceptions import ParameterError

__all__ = ["Ensemble"]


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
        eta = _number("eta", self.eta, "a number below +inf (-inf: no outliers)")
        gamma = _number("gamma", self.gamma, "a finite number > 0")
        gamma_tilde = (
            gamma
            if self.gamma_tilde is None
            else _number("gamma_tilde", self.gamma_tilde, "a finite number > 0")
        )
        eta_tilde = (
            eta
            if self.eta_tilde is None
            else _number("eta_tilde", self.eta_tilde, "a number below +inf (-inf: no outliers)")
        )
        for name, value in (("eta", eta), ("eta_tilde", eta_tilde)):
            if math.isnan(value) or value == math.inf:
                raise ParameterError(name, value, "a number below +inf (-inf: no outliers)")
        for name, value in (("gamma", gamma), ("gamma_tilde", gamma_tilde)):
            if not (0.0 < value < math.inf):
                raise ParameterError(name, value, "a finite number > 0")
        for name, value in (
            ("eta", eta),
            ("gamma", gamma),
            ("gamma_tilde", gamma_tilde),
            ("eta_tilde", eta_tilde),
        ):
            object.__setattr__(self, name, value)

    @classmethod
    def from_contamination(
        cls,
        contamination: float,
        gamma: float,
        gamma_tilde: float | None = None,
        eta_tilde: float | None = None,
    ) -> Ensemble:
        """Build the ensemble whose outlier fraction is ``contamination``, in [0, 1)."""
        value = _number("contamination", contamination, "0 <= contamination < 1")
        if not 0.0 <= value < 1.0:
            raise ParameterError("contamination", contamination, "0 <= contamination < 1")
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


def _number(name: str, value: object, permitted: str) -> float:
    if isinstance(value, bool | str | bytes):
        raise ParameterError(name, value, permitted)
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise ParameterError(name, value, permitted) from None
