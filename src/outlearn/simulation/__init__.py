"""Finite-size campaigns: many runs, reproducible and resumable."""

from outlearn.simulation.campaign import Campaign, CampaignResult, Progress, text_progress
from outlearn.simulation.dice import Dice
from outlearn.simulation.scaling import FiniteSizeScaling, compare_with_theory, finite_size_scaling
from outlearn.simulation.statistics import RunRecord, Summary, TaskStats
from outlearn.simulation.stopping import runs, standard_error
from outlearn.simulation.store import Store
from outlearn.simulation.task import Task, grid

__all__ = [
    "Campaign",
    "CampaignResult",
    "Dice",
    "FiniteSizeScaling",
    "Progress",
    "RunRecord",
    "Store",
    "Summary",
    "Task",
    "TaskStats",
    "compare_with_theory",
    "finite_size_scaling",
    "grid",
    "runs",
    "standard_error",
    "text_progress",
]
