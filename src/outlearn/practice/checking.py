"""What knowing some labels is worth: the Bayes bound with wrong labels, and with examples checked by hand.

For V from a few values (1 right, 0 garbage, -1 wrong label) the self-overlap q of the posterior mean solves

    q/(1-q) = αγ ⟨u²⟩ = αγ ⟨V u⟩,   u = E[V | b],  b = γ q V + √(γ q) x                    (C1)

(for V in {0, 1} the Bayes-optimal equation of the theory). An example that somebody checked has u = V. A
random share s of checked examples therefore gives

    q/(1-q) = αγ [ s ⟨V²⟩ + (1-s) ⟨V u⟩ ].                                                 (C2)

If the most doubtful are checked first, doubt being Var(V | b₀) at the overlap q₀ before checking, the fields
before and after are nested: b = b₀ + γ(q-q₀) V + √(γ(q-q₀)) x', for the posterior mean is a martingale when
information is added. C2 becomes an average over b₀ and x' in which the checked part of the b₀ has u = V (C3).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from outlearn.exceptions import ParameterError

__all__ = ["Knowledge", "alpha_for", "overlap"]

Array = NDArray[np.float64]
Order = Literal["random", "doubtful"]

_X, _W = np.polynomial.hermite_e.hermegauss(101)
_W = _W / math.sqrt(2.0 * math.pi)
_X2, _W2 = np.polynomial.hermite_e.hermegauss(31)
_W2 = _W2 / math.sqrt(2.0 * math.pi)
_MOST_STEPS = 4000
_TOLERANCE = 1e-11


@dataclass(frozen=True, slots=True, kw_only=True)
class Knowledge:
    """What V may be, and how often: right label, garbage, wrong label."""

    contamination: float
    label_noise: float = 0.0

    @property
    def values(self) -> Array:
        """1, 0, -1."""
        return np.array([1.0, 0.0, -1.0])

    @property
    def weights(self) -> Array:
        """Their probabilities."""
        p1 = 1.0 - self.contamination
        return np.array([p1 * (1.0 - self.label_noise), self.contamination, p1 * self.label_noise])

    def beliefs(self, b: Array, a: float) -> tuple[Array, Array]:
        """Mean and variance of V under p(V) exp(b V - a V²/2)."""
        with np.errstate(divide="ignore"):
            logits = np.log(self.weights) + np.multiply.outer(b, self.values) - 0.5 * a * self.values**2
        logits -= logits.max(axis=-1, keepdims=True)
        p = np.exp(logits)
        p /= p.sum(axis=-1, keepdims=True)
        mean = p @ self.values
        return mean, p @ self.values**2 - mean**2


def overlap(
    knowledge: Knowledge,
    *,
    alpha: float,
    gamma: float,
    checked: float = 0.0,
    order: Order = "random",
) -> float:
    """Overlap q of the posterior mean with the truth when a share of the examples was checked (Eqs. C1-C3).

    It is the root that message passing reaches: the smallest one. The cosine of its direction is √q.

    >>> from outlearn.model import Ensemble
    >>> e = Ensemble(eta=4.0, gamma=10.0)
    >>> q = overlap(Knowledge(contamination=e.outlier_fraction), alpha=20.0, gamma=10.0)
    >>> round(q, 4)
    0.541
    >>> world = Knowledge(contamination=e.outlier_fraction)
    >>> doubtful = overlap(world, alpha=20.0, gamma=10.0, checked=0.05, order="doubtful")
    >>> doubtful > q
    True
    """
    if not 0.0 <= checked <= 1.0:
        raise ParameterError("checked", checked, "a share in [0, 1]")
    if order not in ("random", "doubtful"):
        raise ParameterError("order", order, "'random' or 'doubtful'")
    strength, w, v = alpha * gamma, knowledge.weights, knowledge.values
    all_known = float(w @ v**2)

    def fresh(q: float) -> float:
        b = gamma * q * v[:, None] + math.sqrt(gamma * q) * _X
        u, _ = knowledge.beliefs(b, gamma * q)
        return float((w * v) @ (u @ _W))

    if order == "random" or checked in (0.0, 1.0):
        return _smallest_root(lambda q: strength * (checked * all_known + (1.0 - checked) * fresh(q)), 0.0)

    before = _smallest_root(lambda q: strength * fresh(q), 0.0)
    # fields before checking: a dense grid, so that the border of what is checked is sharp
    x = np.linspace(-6.0, 6.0, 401)
    density = np.exp(-0.5 * x * x)
    density /= density.sum()
    b0 = gamma * before * v[:, None] + math.sqrt(gamma * before) * x
    _, doubt = knowledge.beliefs(b0, gamma * before)
    share = _most_doubtful(doubt, w[:, None] * density, checked)
    taken = float(((w * v**2)[:, None] * density * share).sum())
    left = (w * v)[:, None] * density * (1.0 - share)

    def selected(q: float) -> float:
        more = max(q - before, 0.0)
        b = b0[:, :, None] + gamma * more * v[:, None, None] + math.sqrt(gamma * more) * _X2
        u, _ = knowledge.beliefs(b, gamma * max(q, before))
        return strength * (taken + float((left * (u @ _W2)).sum()))

    return _smallest_root(selected, before, 1e-7)


def alpha_for(knowledge: Knowledge, q: float, gamma: float) -> float:
    """Examples per feature that give overlap q when nothing is checked: Eq. C1 read backwards.

    >>> round(alpha_for(Knowledge(contamination=0.5), 0.8160764732, 10.0), 6)
    1.0
    """
    v, w = knowledge.values, knowledge.weights
    u, _ = knowledge.beliefs(gamma * q * v[:, None] + math.sqrt(gamma * q) * _X, gamma * q)
    return q / (1.0 - q) / (gamma * float((w * v) @ (u @ _W)))


def _most_doubtful(doubt: Array, mass: Array, checked: float) -> Array:
    """The share of every cell that is checked when a total mass is, in order of doubt."""
    order = np.argsort(-doubt, axis=None, kind="stable")
    flat = mass.ravel()[order]
    used = np.cumsum(flat)
    share = np.empty(flat.size)
    share[order] = np.clip((checked - (used - flat)) / np.maximum(flat, 1e-300), 0.0, 1.0)
    return share.reshape(doubt.shape)


def _smallest_root(information: Callable[[float], float], low: float, tolerance: float = _TOLERANCE) -> float:
    """Iterate q -> F/(1+F) from below, with Aitken steps that stay below the root."""
    q = low
    for _ in range(_MOST_STEPS):
        f = information(q)
        new = f / (1.0 + f)
        if abs(new - q) <= tolerance * (1.0 + new):
            return float(new)
        f = information(new)
        newer = f / (1.0 + f)
        bend = newer - 2.0 * new + q
        jump = newer
        if bend < 0.0:
            jump = new + 0.9 * max(newer - new, 0.0) * (newer - new) / max(-bend, 1e-300)
            jump = min(max(jump, newer), 1.0 - 1e-12)
            f = information(jump)
            if f / (1.0 + f) < jump:  # beyond the root
                jump = newer
        q = jump
    return float(q)
