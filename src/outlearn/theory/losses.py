"""Convex losses of the margin u = label · field, each as a value and a proximal operator.

The theory needs of a loss only its Moreau envelope M(w; t) = min_u loss(u) + (u - w)²/(2t); its slope in w is
g = (w - prox(w, t))/t. A loss of one's own is a subclass of :class:`Loss` with ``value`` and ``prox``
(docs/howto/add-a-loss.md); the rest is optional and only makes it faster or more precise.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numba import vectorize
from numpy.typing import NDArray
from scipy.special import expit

from outlearn.model.checks import positive

__all__ = ["Hinge", "Huber", "Logistic", "Loss", "Square", "SquaredHinge"]

Array = NDArray[np.float64]


class Loss(ABC):
    """A convex loss of the margin. Subclasses give ``value`` and ``prox``; make them frozen dataclasses."""

    @abstractmethod
    def value(self, u: Array) -> Array:
        """Loss at margins u."""

    @abstractmethod
    def prox(self, w: Array, t: float) -> Array:
        """Minimiser over u of value(u) + (u - w)²/(2t), for t > 0."""

    def slope(self, w: Array, t: float) -> tuple[Array, Array]:
        """First and second derivative of the Moreau envelope in w.

        The default takes the first from the prox and the second by a central difference, which serves
        Newton's steps and the stability number; the saddle point itself does not depend on it.
        """
        h = 1e-5 * (1.0 + np.abs(w))
        g = (w - self.prox(w, t)) / t
        up, down = (w + h - self.prox(w + h, t)) / t, (w - h - self.prox(w - h, t)) / t
        return g, (up - down) / (2.0 * h)

    def breaks(self, t: float) -> tuple[float, ...] | None:
        """Values of w between which the prox is smooth; None if unknown (a finer quadrature is then used)."""
        return None


@dataclass(frozen=True, slots=True)
class Square(Loss):
    """Least squares on the labels, (1 - u)²/2: ridge regression used as a classifier.

    >>> Square().prox(np.array([0.0]), 1.0)
    array([0.5])
    """

    def value(self, u: Array) -> Array:
        """(1 - u)²/2."""
        return 0.5 * (1.0 - u) ** 2

    def prox(self, w: Array, t: float) -> Array:
        """(w + t)/(1 + t)."""
        return (w + t) / (1.0 + t)

    def slope(self, w: Array, t: float) -> tuple[Array, Array]:
        """Closed form."""
        return (w - 1.0) / (1.0 + t), np.full(w.shape, 1.0 / (1.0 + t))

    def breaks(self, t: float) -> tuple[float, ...]:
        """Smooth everywhere."""
        return ()


@dataclass(frozen=True, slots=True)
class Hinge(Loss):
    """Support vector machine, max(0, 1 - u).

    >>> Hinge().prox(np.array([-2.0, 0.5, 3.0]), 1.0)
    array([-1.,  1.,  3.])
    """

    def value(self, u: Array) -> Array:
        """max(0, 1 - u)."""
        return np.maximum(0.0, 1.0 - u)

    def prox(self, w: Array, t: float) -> Array:
        """Move w up by t, but not past the margin 1."""
        return np.maximum(w, np.minimum(w + t, 1.0))

    def slope(self, w: Array, t: float) -> tuple[Array, Array]:
        """-1 below 1 - t, then linear up to 0 at 1."""
        inside = (w > 1.0 - t) & (w < 1.0)
        return np.where(inside, (w - 1.0) / t, np.where(w < 1.0, -1.0, 0.0)), inside / t

    def breaks(self, t: float) -> tuple[float, ...]:
        """Where the example meets the margin, and where it stays behind it."""
        return (1.0 - t, 1.0)


@dataclass(frozen=True, slots=True)
class SquaredHinge(Loss):
    """Squared hinge, max(0, 1 - u)²/2.

    >>> SquaredHinge().prox(np.array([0.0, 3.0]), 1.0)
    array([0.5, 3. ])
    """

    def value(self, u: Array) -> Array:
        """max(0, 1 - u)²/2."""
        return 0.5 * np.maximum(0.0, 1.0 - u) ** 2

    def prox(self, w: Array, t: float) -> Array:
        """Least squares below the margin, w above."""
        return np.where(w < 1.0, (w + t) / (1.0 + t), w)

    def slope(self, w: Array, t: float) -> tuple[Array, Array]:
        """Closed form, with a kink at 1."""
        return np.minimum(w - 1.0, 0.0) / (1.0 + t), (w < 1.0) / (1.0 + t)

    def breaks(self, t: float) -> tuple[float, ...]:
        """The margin."""
        return (1.0,)


@dataclass(frozen=True, slots=True)
class Huber(Loss):
    """Huber's loss of the residual r = 1 - u: r²/2 up to |r| = delta, then linear.

    >>> Huber(delta=0.5).prox(np.array([-2.0, 1.0]), 1.0)
    array([-1.5,  1. ])
    """

    delta: float = 1.0

    def __post_init__(self) -> None:
        positive("delta", self.delta)

    def value(self, u: Array) -> Array:
        """r²/2 or delta |r| - delta²/2."""
        r = np.abs(1.0 - u)
        return np.where(r <= self.delta, 0.5 * r * r, self.delta * (r - 0.5 * self.delta))

    def prox(self, w: Array, t: float) -> Array:
        """Least squares near 1, a shift by t delta far from it."""
        near = np.abs(w - 1.0) <= self.delta * (1.0 + t)
        return np.where(near, (w + t) / (1.0 + t), w - t * self.delta * np.sign(w - 1.0))

    def slope(self, w: Array, t: float) -> tuple[Array, Array]:
        """Clipped line."""
        g = np.clip((w - 1.0) / (1.0 + t), -self.delta, self.delta)
        return g, (np.abs(w - 1.0) < self.delta * (1.0 + t)) / (1.0 + t)

    def breaks(self, t: float) -> tuple[float, ...]:
        """The two ends of the quadratic part."""
        return (1.0 - self.delta * (1.0 + t), 1.0 + self.delta * (1.0 + t))


@vectorize(["float64(float64, float64)"], cache=True)
def _logistic_prox(w: float, t: float) -> float:
    """Root of p - w - t σ(-p), which increases in p: Newton kept inside the bracket [w, w + t]."""
    low, high = w, w + t
    p = 0.5 * (low + high)
    for _ in range(200):
        s = 1.0 / (1.0 + math.exp(p)) if p < 700.0 else 0.0
        gap = p - w - t * s
        if gap > 0.0:
            high = p
        else:
            low = p
        new = p - gap / (1.0 + t * s * (1.0 - s))
        if not low < new < high:
            new = 0.5 * (low + high)
        if abs(new - p) <= 2e-16 * (1.0 + abs(p)):
            return new
        p = new
    return p


@dataclass(frozen=True, slots=True)
class Logistic(Loss):
    """Logistic regression, ln(1 + e^(-u)).

    >>> Logistic().prox(np.array([0.0]), 2.0).round(6)
    array([0.674832])
    """

    def value(self, u: Array) -> Array:
        """ln(1 + e^(-u)), without overflow."""
        return np.logaddexp(0.0, -u)

    def prox(self, w: Array, t: float) -> Array:
        """Root of p = w + t σ(-p)."""
        return _logistic_prox(w, t)

    def slope(self, w: Array, t: float) -> tuple[Array, Array]:
        """-σ(-p), and the envelope's curvature v/(1 + t v) with v = σ(p)σ(-p)."""
        p = self.prox(w, t)
        s = expit(-p)
        v = s * expit(p)
        return -s, v / (1.0 + t * v)

    def breaks(self, t: float) -> tuple[float, ...]:
        """Smooth, but the prox turns within a few units of -t and of 0: panels end there."""
        return (-t - 32.0, -t - 8.0, -t - 2.0, 2.0, 8.0, 32.0)
