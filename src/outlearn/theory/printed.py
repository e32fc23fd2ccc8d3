"""The paper's equations as printed, kept beside the exact ones for comparison.

Soft selection, appendix A: the envelope is replaced by ``ln(1+e^a) + (b/2) I_1`` and its derivatives
I_2..I_7, an expansion to second order of the integral over y around y = 0. It agrees with the exact envelope
for small b and is singular for b >= 4, where ``1 - b sigma'`` vanishes.

Hard selection, appendix B: f_h (Eq. freehard) and the second moment (Eq. ordhard:two) carry Q_hat/2 where
the derivation gives Q_hat. Printed is therefore the exact functional with ``L(a; b) = max(0, a + b/4)`` in
place of ``max(0, a + b/2)``; its stationary points give Eq. freehard, and the onset of the trivial solution
``eta_0 = -g/2 + g²/(4 gamma)``.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from outlearn.theory.selection import HardSystem, SelectionSystem
from outlearn.theory.selection_averages import PRINTED_SOFT
from outlearn.theory.system import Points

__all__ = ["PrintedHardSystem", "PrintedSoftSystem", "printed_hard_energy", "printed_integrals"]

Array = NDArray[np.float64]

# overlaps, lengths and values of b
_NET = (
    (1e-6, 0.01, 0.1, 0.4, 0.8, 0.97),
    (1e-6, 0.03, 0.3, 0.7, 1.2, 3.0),
    (0.03, 0.3, 1.0, 2.0, 3.0, 3.8),
)


class PrintedSoftSystem(SelectionSystem):
    """Soft selection with I_1..I_7; NOT_DEFINED wherever b = g² z/gamma reaches 4."""

    rule = PRINTED_SOFT
    counted: ClassVar[bool] = False  # solutions are lost at b = 4

    def grid(self, points: Points) -> Array:
        """A net over overlap, length and b below 4."""
        net = np.meshgrid(*_NET, indexing="ij")
        cosine, level, b = (x.reshape(-1, 1) for x in net)
        Q, z = level * np.maximum(1.0, 10.0 / points.gamma), b * points.gamma / points.gamma_tilde**2
        return np.log(self._guess(points, cosine, Q, z)[:3]).transpose(1, 2, 0)

    def undefined(self, points: Points, v: Array) -> NDArray[np.bool_]:
        """Rows with b >= 4."""
        with np.errstate(over="ignore"):
            return points.gamma_tilde**2 * np.exp(v[:, 2]) / points.gamma >= 4.0


class PrintedHardSystem(HardSystem):
    """Hard selection with Q_hat/2, as printed."""

    rate: ClassVar[float] = 0.25


def printed_integrals(a: Array, b: float) -> dict[str, Array]:
    """Integrands of I_1..I_7 (appendix A, letter by letter) at local fields a; the last factor x is left out.

    >>> {k: round(float(v), 6) for k, v in printed_integrals(np.array(0.0), 1.0).items()}
    {'I_1': 0.333333, 'I_2': 0.333333, 'I_4': 0.444444, 'I_5': 0.693147, 'I_6': 0.5}
    """
    once, twice = np.exp(-a), np.exp(-2.0 * a)
    below = twice + 1.0 + (2.0 - b) * once
    return {
        "I_1": 1.0 / below,
        "I_2": (2.0 * twice + (2.0 - b) * once) / below**2,
        "I_4": (twice + 1.0 + 2.0 * once) / below**2,
        "I_5": np.log1p(np.exp(a)),
        "I_6": 1.0 / (once + 1.0),
    }


def printed_hard_energy(
    *, eta: float, gamma: float, gamma_tilde: float, R_hat: float, Q_hat: float, z_hat: float
) -> float:
    """f_h of Eq. freehard, letter by letter, with ρ = 1.

    >>> round(printed_hard_energy(eta=0.0, gamma=10.0, gamma_tilde=10.0, R_hat=2.0, Q_hat=2.5, z_hat=-0.1), 5)
    -6.95095
    """
    g = gamma_tilde
    below = Q_hat * gamma * g + z_hat * g * g + gamma
    gain = (Q_hat + 2.0 * R_hat**2 * gamma) * (Q_hat * g + 1.0) * gamma * g * g / (4.0 * below**2)
    return float(eta * Q_hat + 0.5 * np.log(Q_hat * g + 1.0) - gain)
