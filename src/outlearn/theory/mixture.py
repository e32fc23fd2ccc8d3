"""The data side as a finite mixture: each component has its weight, overlap, precision and label."""

from __future__ import annotations

import math
from dataclasses import dataclass

from outlearn.exceptions import ParameterError
from outlearn.model import Ensemble

__all__ = ["Component", "contaminated"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """A Gaussian cloud of inputs that all carry one label.

    Attributes
    ----------
    weight : float
        Probability of the component; the weights of a mixture sum to one.
    overlap : float
        Mean of label·ξ along B/√N: 1 for the paper's informative examples, 0 for garbage, -1 for wrong
        labels.
    precision : float
        Inverse variance of ξ per coordinate.
    label : int
        +1 or -1. It matters only together with an intercept.
    """

    weight: float
    overlap: float
    precision: float
    label: int = 1

    def __post_init__(self) -> None:
        if not 0.0 <= self.weight <= 1.0:
            raise ParameterError("weight", self.weight, "a number in [0, 1]")
        if not math.isfinite(self.overlap):
            raise ParameterError("overlap", self.overlap, "a finite number")
        if not 0.0 < self.precision < math.inf:
            raise ParameterError("precision", self.precision, "a finite number > 0")
        if self.label not in (-1, 1):
            raise ParameterError("label", self.label, "-1 or +1")


def contaminated(
    ensemble: Ensemble, positive: float = 0.5, garbage_positive: float | None = None
) -> tuple[Component, ...]:
    """The paper's ensemble unfolded into four components, with classes of any size.

    ``positive`` is the fraction of label +1 among the informative examples, ``garbage_positive`` among the
    outliers (the same when left out).

    >>> [round(c.weight, 3) for c in contaminated(Ensemble(0.0, 10.0), positive=0.8, garbage_positive=0.5)]
    [0.4, 0.1, 0.25, 0.25]
    """
    garbage_positive = positive if garbage_positive is None else garbage_positive
    for name, value in (("positive", positive), ("garbage_positive", garbage_positive)):
        if not 0.0 <= value <= 1.0:
            raise ParameterError(name, value, "a number in [0, 1]")
    shares = (
        (ensemble.informative_fraction * positive, 1.0, 1),
        (ensemble.informative_fraction * (1.0 - positive), 1.0, -1),
        (ensemble.outlier_fraction * garbage_positive, 0.0, 1),
        (ensemble.outlier_fraction * (1.0 - garbage_positive), 0.0, -1),
    )
    return tuple(
        Component(weight=weight, overlap=overlap, precision=ensemble.gamma, label=label)
        for weight, overlap, label in shares
    )
