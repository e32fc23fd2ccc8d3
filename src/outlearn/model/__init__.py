"""What the world is: the contaminated two-cluster ensemble, samples from it, the learner's energies."""

from outlearn.model.energy import hard_energy, soft_energy
from outlearn.model.ensemble import Ensemble
from outlearn.model.overlaps import Overlaps, angle, distance, overlaps
from outlearn.model.sampling import Dataset, sample

__all__ = [
    "Dataset",
    "Ensemble",
    "Overlaps",
    "angle",
    "distance",
    "hard_energy",
    "overlaps",
    "sample",
    "soft_energy",
]
