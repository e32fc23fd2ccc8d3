"""What every method gives back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fitted:
    """What a method learned: a rule, and its doubt about every training example."""

    predict: Callable[[np.ndarray], np.ndarray]
    doubt: np.ndarray


Method = Callable[[np.ndarray, np.ndarray, int], Fitted]
