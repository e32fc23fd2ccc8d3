"""The data side as a finite mixture: each component has its weight, overlap, precision and label."""

from __future__ import annotations

from dataclasses import dataclass

from outlearn.model import Ensemble
from outlearn.model.checks import finite, number
from outlearn.model.checks import positive as above_zero
from outlearn.model.ensemble import checked_ensemble

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
        _share("weight", self.weight)
        finite("overlap", self.overlap)
        above_zero("precision", self.precision)
        number("label", self.label, "-1 or +1", lambda x: abs(x) == 1.0)


def contaminated(
    ensemble: Ensemble, positive: float = 0.5, garbage_positive: float | None = None
) -> tuple[Component, ...]:
    """The paper's ensemble unfolded into four components, with classes of any size.

    ``positive`` is the fraction of label +1 among the informative examples, ``garbage_positive`` among the
    outliers (the same when left out).

    >>> [round(c.weight, 3) for c in contaminated(Ensemble(0.0, 10.0), positive=0.8, garbage_positive=0.5)]
    [0.4, 0.1, 0.25, 0.25]
    """
    checked_ensemble(ensemble)
    share = _share("positive", positive)
    garbage = share if garbage_positive is None else _share("garbage_positive", garbage_positive)
    shares = (
        (ensemble.informative_fraction * share, 1.0, 1),
        (ensemble.informative_fraction * (1.0 - share), 1.0, -1),
        (ensemble.outlier_fraction * garbage, 0.0, 1),
        (ensemble.outlier_fraction * (1.0 - garbage), 0.0, -1),
    )
    return tuple(
        Component(weight=weight, overlap=overlap, precision=ensemble.gamma, label=label)
        for weight, overlap, label in shares
    )


def _share(name: str, value: object) -> float:
    return number(name, value, "a number in [0, 1]", lambda x: 0.0 <= x <= 1.0)
