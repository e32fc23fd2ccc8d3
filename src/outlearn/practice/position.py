"""Where the data lie in the phase diagram, and how far it is to the transition, in units that people use."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from outlearn.exceptions import OutlearnError
from outlearn.model import Ensemble
from outlearn.theory import HardSelection, SoftSelection, Transition, transitions
from outlearn.theory.bayes import thresholds

__all__ = ["Position", "boundary", "locate"]

_ETA_REACH = 8.0
_ALPHA_REACH = 30.0
_LEARNT = 0.35  # a direction error below which a branch counts as having found the signal


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """One learner's place in the phase diagram.

    Attributes
    ----------
    learner : str
    side : str
        "found": the signal's side of the transition, or no transition; "lost": the other side; "between": the
        interval where both solutions exist, and the start decides; "smooth": no transition near.
    eta, alpha : float
        The place.
    eta_critical, alpha_critical : float or None
        Where the equilibrium changes along the two axes, if it does.
    contamination_critical : float or None
        ``eta_critical`` as a share of garbage.
    samples_factor : float or None
        alpha_critical / alpha: beyond 1, the factor on the number of examples that reaches the signal.
    sentences : tuple of str
    """

    learner: str
    side: str
    eta: float
    alpha: float
    eta_critical: float | None
    alpha_critical: float | None
    sentences: tuple[str, ...]

    @property
    def contamination_critical(self) -> float | None:
        """The share of garbage at the transition."""
        return None if self.eta_critical is None else 1.0 / (1.0 + math.exp(-self.eta_critical))

    @property
    def samples_factor(self) -> float | None:
        """The factor on the number of examples at the transition."""
        return None if self.alpha_critical is None else self.alpha_critical / self.alpha

    @property
    def safe(self) -> bool:
        """Whether this learner finds what there is to find."""
        return self.side in ("found", "smooth")

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "learner": self.learner,
            "side": self.side,
            "eta": self.eta,
            "alpha": self.alpha,
            "eta_critical": self.eta_critical,
            "alpha_critical": self.alpha_critical,
            "contamination_critical": self.contamination_critical,
            "samples_factor": self.samples_factor,
            "sentences": list(self.sentences),
        }


def locate(ensemble: Ensemble, alpha: float, learner: str) -> Position:
    """Find the transition of a learner along both axes, from here.

    >>> from outlearn.model import Ensemble
    >>> print(*locate(Ensemble.from_contamination(0.8, gamma=10.0), 20.0, "soft").sentences)
    The share of garbage could rise from 80 % to 98 % before soft selection loses the signal.
    """
    eta, gamma = max(ensemble.eta, -12.0), ensemble.gamma
    if learner == "bayes":
        return _locate_bayes(eta, gamma, alpha)
    theory = SoftSelection() if learner == "soft" else HardSelection()
    here = Ensemble(eta=eta, gamma=gamma)
    over_eta = _loss(_crossings(theory, here, alpha, "eta", (eta - _ETA_REACH, eta + _ETA_REACH)))
    between = (alpha / _ALPHA_REACH, alpha * _ALPHA_REACH)
    over_alpha = _loss(_crossings(theory, here, alpha, "alpha", between))
    side = "smooth"
    if over_eta is not None:
        side = "found" if eta < over_eta.value else "lost"
        low, high = over_eta.lower_spinodal, over_eta.upper_spinodal
        if low is not None and high is not None and low < eta < high:
            side = "between"
    elif over_alpha is not None:
        side = "found" if alpha > over_alpha.value else "lost"
    return _position(
        learner,
        side,
        eta,
        alpha,
        None if over_eta is None else over_eta.value,
        None if over_alpha is None else over_alpha.value,
    )


def boundary(gamma: float, alphas: ArrayLike, between: tuple[float, float]) -> NDArray[np.float64]:
    """Where soft selection loses the signal, as eta at every alpha; nan where it loses none.

    >>> boundary(10.0, [0.2, 20.0], (-2.0, 6.0)).round(3)
    array([  nan, 3.921])
    """
    here, theory = Ensemble(eta=0.0, gamma=gamma), SoftSelection()
    found = [_loss(_crossings(theory, here, float(alpha), "eta", between)) for alpha in np.asarray(alphas)]
    return np.array([math.nan if t is None else t.value for t in found])


def _locate_bayes(eta: float, gamma: float, alpha: float) -> Position:
    here = thresholds(eta, gamma)
    side, alpha_critical = "smooth", None
    if here is not None:
        alpha_critical = here.algorithmic
        side = "found" if alpha >= here.algorithmic else "lost"
        if here.information_theoretic <= alpha < here.algorithmic:
            side = "between"
    return _position("bayes", side, eta, alpha, None, alpha_critical)


@lru_cache(maxsize=64)
def _crossings(
    theory: Any, ensemble: Ensemble, alpha: float, over: Any, between: tuple[float, float]
) -> tuple[Transition, ...]:
    try:
        return transitions(theory, ensemble, alpha, over=over, between=between)
    except (OutlearnError, ValueError):  # a path that cannot be followed tells nothing of a transition
        return ()


def _loss(found: tuple[Transition, ...]) -> Transition | None:
    """The transition at which the signal is lost: from a small to a large direction error."""
    best, gap = None, 0.1
    for t in found:
        errors = sorted((t.below.angle, t.above.angle))
        if errors[1] - errors[0] > gap and errors[0] < _LEARNT:
            best, gap = t, errors[1] - errors[0]
    return best


_NAMES = {"soft": "soft selection", "hard": "hard selection", "bayes": "the Bayes learner"}


def _position(
    learner: str, side: str, eta: float, alpha: float, eta_c: float | None, alpha_c: float | None
) -> Position:
    name = _NAMES[learner]
    out = []
    share = 100.0 / (1.0 + math.exp(-eta))
    if eta_c is not None:
        critical = 100.0 / (1.0 + math.exp(-eta_c))
        if eta < eta_c:
            out.append(
                f"The share of garbage could rise from {_per_cent(share)} to {_per_cent(critical)} before "
                f"{name} loses the signal."
            )
        else:
            out.append(
                f"{name[0].upper()}{name[1:]} finds the signal only below {_per_cent(critical)} garbage; "
                f"here it is {_per_cent(share)}."
            )
    if alpha_c is not None:
        factor = alpha_c / alpha
        if factor > 1.0:
            out.append(f"{_more(factor)} would bring {name} to the side where the signal is found.")
        else:
            out.append(
                f"{100 * (1.0 - factor):.0f} % of the examples could be missing before {name} loses it."
            )
    if side == "between":
        out.append(f"Both solutions exist here: what {name} finds depends on where it starts.")
    if not out:
        out.append(f"No transition is near: the error of {name} changes smoothly with garbage and examples.")
    return Position(
        learner=learner,
        side=side,
        eta=eta,
        alpha=alpha,
        eta_critical=eta_c,
        alpha_critical=alpha_c,
        sentences=tuple(out),
    )


def _per_cent(share: float) -> str:
    return f"{share:.1f} %" if share > 99.0 or share < 1.0 else f"{share:.0f} %"


def _more(factor: float) -> str:
    return (
        f"{100 * (factor - 1):.0f} % more examples"
        if factor < 3.0
        else f"{factor:.1f} times as many examples"
    )
