"""Replica theory: saddle points, branches, transitions, phase diagrams, limits, exact and as printed."""

from outlearn.theory.bayes import BayesOptimal
from outlearn.theory.bayes_phases import hard_phase, hard_phase_onset, thresholds
from outlearn.theory.claims import Claim, claims, critical_eta, critical_gamma
from outlearn.theory.diagram import Line, PhaseDiagram, phase_diagram
from outlearn.theory.empirical_risk import EmpiricalRisk
from outlearn.theory.evolution import StateEvolution, state_evolution
from outlearn.theory.follow import Path, follow
from outlearn.theory.gibbs import Gibbs
from outlearn.theory.hard import HardSelection
from outlearn.theory.hebb import Hebb
from outlearn.theory.limit import Limit, limit
from outlearn.theory.losses import Hinge, Huber, Logistic, Loss, Square, SquaredHinge
from outlearn.theory.mixture import Component, contaminated
from outlearn.theory.results import SaddlePoint, to_frame
from outlearn.theory.soft import SoftSelection
from outlearn.theory.solve import Branches, branches, learning_curve, solve
from outlearn.theory.system import Explicit, Learner, Points, System
from outlearn.theory.transitions import Transition, transitions

__all__ = [
    "BayesOptimal",
    "Branches",
    "Claim",
    "Component",
    "EmpiricalRisk",
    "Explicit",
    "Gibbs",
    "HardSelection",
    "Hebb",
    "Hinge",
    "Huber",
    "Learner",
    "Limit",
    "Line",
    "Logistic",
    "Loss",
    "Path",
    "PhaseDiagram",
    "Points",
    "SaddlePoint",
    "SoftSelection",
    "Square",
    "SquaredHinge",
    "StateEvolution",
    "System",
    "Transition",
    "branches",
    "claims",
    "contaminated",
    "critical_eta",
    "critical_gamma",
    "follow",
    "hard_phase",
    "hard_phase_onset",
    "learning_curve",
    "limit",
    "phase_diagram",
    "solve",
    "state_evolution",
    "thresholds",
    "to_frame",
    "transitions",
]
