"""Compiled inner loops: the gate that turns fields into weights."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import intrinsic

__all__ = ["gate"]


@intrinsic
def _float_from_bits(typingctx: Any, bits: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], context.get_value_type(types.float64))

    return types.float64(types.int64), codegen


# exp and log1p as branch-free polynomials: unlike libm's they vectorise, and K starts on P rows need P*K
# of each.
@njit(inline="always")
def _exp_minus(x: float) -> float:
    """exp(-x) for x >= 0, to 2 units in the last place; 0 beyond 708."""
    y = min(x, 708.0)
    k = math.floor(y * 1.4426950408889634 + 0.5)
    r = (k * 6.93147180369123816490e-01 - y) + k * 1.90821492927058770002e-10
    p = 1.0 / 6227020800.0
    p = p * r + 1.0 / 479001600.0
    p = p * r + 1.0 / 39916800.0
    p = p * r + 1.0 / 3628800.0
    p = p * r + 1.0 / 362880.0
    p = p * r + 1.0 / 40320.0
    p = p * r + 1.0 / 5040.0
    p = p * r + 1.0 / 720.0
    p = p * r + 1.0 / 120.0
    p = p * r + 1.0 / 24.0
    p = p * r + 1.0 / 6.0
    p = p * r + 0.5
    p = p * r + 1.0
    p = p * r + 1.0
    return p * _float_from_bits((1023 - np.int64(k)) << 52)


@njit(inline="always")
def _log1p_unit(e: float) -> float:
    """ln(1 + e) for 0 <= e <= 1, as 2 artanh(e / (2 + e)) summed to rounding."""
    t = e / (2.0 + e)
    u = t * t
    p = 1.0 / 31.0
    p = p * u + 1.0 / 29.0
    p = p * u + 1.0 / 27.0
    p = p * u + 1.0 / 25.0
    p = p * u + 1.0 / 23.0
    p = p * u + 1.0 / 21.0
    p = p * u + 1.0 / 19.0
    p = p * u + 1.0 / 17.0
    p = p * u + 1.0 / 15.0
    p = p * u + 1.0 / 13.0
    p = p * u + 1.0 / 11.0
    p = p * u + 1.0 / 9.0
    p = p * u + 1.0 / 7.0
    p = p * u + 1.0 / 5.0
    p = p * u + 1.0 / 3.0
    return 2.0 * t * (p * u + 1.0)


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "reassoc", "nsz", "arcp"})
def _gate_soft(H: Any, counts: Any, scale: Any, offset: Any, total: Any, loss: Any) -> None:
    for i in range(H.shape[0]):
        count = counts[i]
        for g in range(H.shape[1]):
            a = scale[g] * H[i, g] + offset[g]
            e = _exp_minus(abs(a))
            soft = max(a, 0.0) + _log1p_unit(e)
            w = (1.0 if a >= 0.0 else e) / (1.0 + e)
            H[i, g] = w
            total[g] += count * w
            loss[g] += count * soft


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "reassoc", "nsz", "arcp"})
def _gate_hard(H: Any, counts: Any, scale: Any, offset: Any, total: Any, loss: Any) -> None:
    for i in range(H.shape[0]):
        count = counts[i]
        for g in range(H.shape[1]):
            a = scale[g] * H[i, g] + offset[g]
            w = 1.0 if a > 0.0 else 0.0
            H[i, g] = w
            total[g] += count * w
            loss[g] += count * max(a, 0.0)


def gate(H: Any, counts: Any, scale: Any, offset: Any, hard: bool) -> tuple[Any, Any]:
    """Turn fields into weights in place; return the total weight and the summed loss of each column.

    With ``a = scale * h + offset`` the weight is sigma(a) and the loss ln(1 + e^a) (soft), or the step of a
    and max(0, a) (hard).
    """
    total, loss = np.zeros(H.shape[1]), np.zeros(H.shape[1])
    (_gate_hard if hard else _gate_soft)(H, counts, scale, offset, total, loss)
    return total, loss
