"""Finite-size campaigns: many runs, reproducible and resumable."""

from outlearn.simulation.campaign import Campaign, CampaignResult, Progress, text_progress
from outlearn.simulation.dice import Dice
from outlearn.simulation.statistics import RunRecord, Summary, TaskStats
from outlearn.simulation.stopping import runs, standard_error
from outlearn.simulation.store import Store
from outlearn.simulation.task import Task, grid

__all__ = [
    "Campaign",
    "CampaignResult",
    "Dice",
    "Progress",
    "RunRecord",
    "Store",
    "Summary",
    "Task",
    "TaskStats",
    "grid",
    "runs",
    "standard_error",
    "text_progress",
]
