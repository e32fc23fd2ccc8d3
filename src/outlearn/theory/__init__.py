"""Replica theory: saddle points, branches, transitions, phase diagrams, limits, exact and as printed."""

from outlearn.theory.diagram import Line, PhaseDiagram, phase_diagram
from outlearn.theory.follow import Path, follow
from outlearn.theory.hard import HardSelection
from outlearn.theory.hebb import Hebb
from outlearn.theory.limit import Limit, limit
from outlearn.theory.results import SaddlePoint, to_frame
from outlearn.theory.soft import SoftSelection
from outlearn.theory.solve import Branches, branches, learning_curve, solve
from outlearn.theory.system import Explicit, Learner, Points, System
from outlearn.theory.transitions import Transition, transitions

__all__ = [
    "Branches",
    "Explicit",
    "HardSelection",
    "Hebb",
    "Learner",
    "Limit",
    "Line",
    "Path",
    "PhaseDiagram",
    "Points",
    "SaddlePoint",
    "SoftSelection",
    "System",
    "Transition",
    "branches",
    "follow",
    "learning_curve",
    "limit",
    "phase_diagram",
    "solve",
    "to_frame",
    "transitions",
]
