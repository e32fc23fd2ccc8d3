"""Numerics without physics: Gaussian averages with errors, safe proximal operators, Newton, paths."""

from outlearn.numerics.continuation import Curve, refine_folds, trace
from outlearn.numerics.gaussian import GaussianAverage, gaussian_average, gaussian_nodes
from outlearn.numerics.newton import NewtonResult, newton
from outlearn.numerics.proximal import proximal, proximal_by_search, sigmoid_prox
from outlearn.numerics.status import Status

__all__ = [
    "Curve",
    "GaussianAverage",
    "NewtonResult",
    "Status",
    "gaussian_average",
    "gaussian_nodes",
    "newton",
    "proximal",
    "proximal_by_search",
    "refine_folds",
    "sigmoid_prox",
    "trace",
]
