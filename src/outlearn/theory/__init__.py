"""Replica theory: saddle points, branches, transitions, phase diagrams, limits, exact and as printed."""

from outlearn.theory.hard import HardSelection
from outlearn.theory.hebb import Hebb
from outlearn.theory.limit import Limit, limit
from outlearn.theory.results import SaddlePoint, to_frame
from outlearn.theory.soft import SoftSelection
from outlearn.theory.solve import Branches, branches, learning_curve, solve
from outlearn.theory.system import Explicit, Learner, Points, System

__all__ = [
    "Branches",
    "Explicit",
    "HardSelection",
    "Hebb",
    "Learner",
    "Limit",
    "Points",
    "SaddlePoint",
    "SoftSelection",
    "System",
    "branches",
    "learning_curve",
    "limit",
    "solve",
    "to_frame",
]
