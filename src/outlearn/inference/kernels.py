"""Compiled inner loops: the gate that turns fields into weights, and passes that read each row once.

A pass over a block of rows computes its fields, gates them, and adds the weighted rows while they are still
in the cache. Fields come first, from memory: four rows at a time hide the latency of a dot product, and each
of the four walks on through memory without a jump, as hardware foresees it (four neighbouring rows of 1600
bytes are read at a third of the speed). One load and store of the sum serve eight rows. Everything is
accumulated in float64.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import intrinsic

__all__ = [
    "gate",
    "gate_fields",
    "pass_over_columns",
    "pass_over_csr",
    "pass_over_rows",
    "pass_with_both_signs",
    "pass_with_many",
]

_TILE_COLUMNS = 512  # columns of four directions and eight rows that fit the first-level cache
_FAST = {"contract", "reassoc", "nsz", "arcp"}  # sums may be reordered; NaN and infinity keep their meaning


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


@njit(cache=True, nogil=True, error_model="numpy", fastmath=_FAST)
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


@njit(cache=True, nogil=True, error_model="numpy", fastmath=_FAST)
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


@njit(inline="always")
def _gate_rows(
    h: Any, n: Any, signs: Any, counts: Any, first: Any, scale: Any, offset: Any, hard: Any, out: Any
) -> Any:
    """Gate ``n`` products with the direction; leave in ``h`` what multiplies each row in the sum."""
    total, loss, signed = 0.0, 0.0, 0.0
    # Slices of known bounds, so that the loops vectorise.
    sign, count, weight = signs[first : first + n], counts[first : first + n], out[first : first + n]
    if hard:
        for i in range(n):
            a = scale * sign[i] * h[i] + offset
            w = 1.0 if a > 0.0 else 0.0
            weight[i] = w
            total += count[i] * w
            loss += count[i] * max(a, 0.0)
    else:
        for i in range(n):
            a = scale * sign[i] * h[i] + offset
            e = _exp_minus(abs(a))
            w = (1.0 if a >= 0.0 else e) / (1.0 + e)
            weight[i] = w
            total += count[i] * w
            loss += count[i] * (max(a, 0.0) + _log1p_unit(e))
    for i in range(n):
        h[i] = count[i] * sign[i] * weight[i]
        signed += h[i]
    return total, loss, signed


@njit(cache=True, nogil=True, error_model="numpy", fastmath=_FAST)
def gate_fields(h: Any, signs: Any, counts: Any, scale: Any, offset: Any, hard: Any, out: Any) -> Any:
    """The pass where the fields are known: fills ``out`` with the weights, returns what a pass returns."""
    return _gate_rows(h, h.size, signs, counts, 0, scale, offset, hard, out)


@njit(inline="always")
def _dots(X: Any, first: Any, n: Any, lo: Any, hi: Any, d: Any, h: Any, shift: Any) -> None:
    """h[i] = X[first + i, lo:hi] . d - shift for n rows, in four streams of consecutive rows."""
    m = hi - lo
    run = n // 4
    for k in range(run):
        g = first + k
        x0, x1, x2, x3 = X[g][lo:hi], X[g + run][lo:hi], X[g + 2 * run][lo:hi], X[g + 3 * run][lo:hi]
        s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
        for j in range(m):
            c = d[j]
            s0 += x0[j] * c
            s1 += x1[j] * c
            s2 += x2[j] * c
            s3 += x3[j] * c
        h[k], h[k + run], h[k + 2 * run], h[k + 3 * run] = s0 - shift, s1 - shift, s2 - shift, s3 - shift
    for k in range(4 * run, n):
        x0, s0 = X[first + k][lo:hi], 0.0
        for j in range(m):
            s0 += x0[j] * d[j]
        h[k] = s0 - shift


@njit(inline="always")
def _axpys(X: Any, first: Any, n: Any, lo: Any, hi: Any, w: Any, total: Any) -> None:
    """total += w[i] X[first + i, lo:hi] for n rows, eight at a time."""
    m = hi - lo
    k = 0
    while k + 8 <= n:
        g = first + k
        x0, x1, x2, x3 = X[g][lo:hi], X[g + 1][lo:hi], X[g + 2][lo:hi], X[g + 3][lo:hi]
        x4, x5, x6, x7 = X[g + 4][lo:hi], X[g + 5][lo:hi], X[g + 6][lo:hi], X[g + 7][lo:hi]
        w0, w1, w2, w3 = w[k], w[k + 1], w[k + 2], w[k + 3]
        w4, w5, w6, w7 = w[k + 4], w[k + 5], w[k + 6], w[k + 7]
        for j in range(m):
            left = w0 * x0[j] + w1 * x1[j] + w2 * x2[j] + w3 * x3[j]
            total[j] += left + (w4 * x4[j] + w5 * x5[j] + w6 * x6[j] + w7 * x7[j])
        k += 8
    while k < n:
        x0, w0 = X[first + k][lo:hi], w[k]
        for j in range(m):
            total[j] += w0 * x0[j]
        k += 1


@njit(cache=True, nogil=True, error_model="numpy", fastmath=_FAST)
def pass_over_rows(
    X: Any,
    lo: Any,
    hi: Any,
    block: Any,
    signs: Any,
    counts: Any,
    d: Any,
    shift: Any,
    scale: Any,
    offset: Any,
    hard: Any,
    out: Any,
    sums: Any,
) -> Any:
    """One pass over rows lo..hi of a C-ordered matrix: adds to ``sums``, fills ``out`` with the weights.

    Returns total weight, summed loss and the sum of what multiplied the rows.
    """
    h = np.empty(block)
    total, loss, signed = 0.0, 0.0, 0.0
    for first in range(lo, hi, block):
        n = min(block, hi - first)
        _dots(X, first, n, 0, X.shape[1], d, h, shift)
        t, e, s = _gate_rows(h, n, signs, counts, first, scale, offset, hard, out)
        total += t
        loss += e
        signed += s
        _axpys(X, first, n, 0, X.shape[1], h, sums)
    return total, loss, signed


@njit(cache=True, nogil=True, error_model="numpy", fastmath=_FAST)
def pass_with_both_signs(
    X: Any,
    lo: Any,
    hi: Any,
    block: Any,
    signs: Any,
    counts: Any,
    d: Any,
    shift: Any,
    offset: Any,
    hard: Any,
    out: Any,
    sums: Any,
) -> Any:
    """As :func:`pass_over_rows`, with two sums: of rows folded by their signs, and of rows as they are."""
    h = np.empty(block)
    total, loss, signed = 0.0, 0.0, 0.0
    for first in range(lo, hi, block):
        n = min(block, hi - first)
        _dots(X, first, n, 0, X.shape[1], d, h, shift)
        t, e, s = _gate_rows(h, n, signs, counts, first, 1.0, offset, hard, out)
        total += t
        loss += e
        signed += s
        _axpys(X, first, n, 0, X.shape[1], h, sums[0])
        for i in range(n):
            h[i] *= signs[first + i]
        _axpys(X, first, n, 0, X.shape[1], h, sums[1])
    return total, loss, signed


@njit(cache=True, nogil=True, error_model="numpy", fastmath=_FAST)
def pass_over_columns(
    XT: Any,
    lo: Any,
    hi: Any,
    block: Any,
    signs: Any,
    counts: Any,
    d: Any,
    shift: Any,
    scale: Any,
    offset: Any,
    hard: Any,
    out: Any,
    sums: Any,
) -> Any:
    """The same for a Fortran-ordered matrix, given as its C-ordered transpose: rows are columns of ``XT``."""
    h = np.empty(block)
    part = np.empty(XT.shape[0])
    total, loss, signed = 0.0, 0.0, 0.0
    for first in range(lo, hi, block):
        n = min(block, hi - first)
        h[:n] = -shift
        _axpys(XT, 0, XT.shape[0], first, first + n, d, h)
        t, e, s = _gate_rows(h, n, signs, counts, first, scale, offset, hard, out)
        total += t
        loss += e
        signed += s
        _dots(XT, 0, XT.shape[0], first, first + n, h, part, 0.0)
        for j in range(part.size):
            sums[j] += part[j]
    return total, loss, signed


@njit(cache=True, nogil=True, error_model="numpy", fastmath=_FAST)
def pass_over_csr(
    data: Any,
    indices: Any,
    indptr: Any,
    lo: Any,
    hi: Any,
    block: Any,
    signs: Any,
    counts: Any,
    d: Any,
    shift: Any,
    scale: Any,
    offset: Any,
    hard: Any,
    out: Any,
    sums: Any,
) -> Any:
    """The same for a compressed sparse row matrix."""
    h = np.empty(block)
    total, loss, signed = 0.0, 0.0, 0.0
    for first in range(lo, hi, block):
        n = min(block, hi - first)
        for i in range(n):
            field = -shift
            for k in range(indptr[first + i], indptr[first + i + 1]):
                field += data[k] * d[indices[k]]
            h[i] = field
        t, e, s = _gate_rows(h, n, signs, counts, first, scale, offset, hard, out)
        total += t
        loss += e
        signed += s
        for i in range(n):
            if h[i] != 0.0:
                for k in range(indptr[first + i], indptr[first + i + 1]):
                    sums[indices[k]] += h[i] * data[k]
    return total, loss, signed


@njit(inline="always")
def _tile_fields(X: Any, first: Any, n: Any, D: Any, H: Any) -> None:
    """H[i, g] = X[first + i] . D[g] for n rows, in tiles of four rows by four directions."""
    H[:n] = 0.0
    m = D.shape[1]
    whole = n // 4 * 4
    for lo in range(0, m, _TILE_COLUMNS):
        hi = min(m, lo + _TILE_COLUMNS)
        for k in range(0, whole, 4):
            r = first + k
            x0, x1, x2, x3 = X[r][lo:hi], X[r + 1][lo:hi], X[r + 2][lo:hi], X[r + 3][lo:hi]
            for g in range(0, D.shape[0], 4):
                d0, d1, d2, d3 = D[g][lo:hi], D[g + 1][lo:hi], D[g + 2][lo:hi], D[g + 3][lo:hi]
                a0, a1, a2, a3, b0, b1, b2, b3 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
                c0, c1, c2, c3, e0, e1, e2, e3 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
                for j in range(hi - lo):
                    y0, y1, y2, y3 = x0[j], x1[j], x2[j], x3[j]
                    z = d0[j]
                    a0 += y0 * z
                    a1 += y1 * z
                    a2 += y2 * z
                    a3 += y3 * z
                    z = d1[j]
                    b0 += y0 * z
                    b1 += y1 * z
                    b2 += y2 * z
                    b3 += y3 * z
                    z = d2[j]
                    c0 += y0 * z
                    c1 += y1 * z
                    c2 += y2 * z
                    c3 += y3 * z
                    z = d3[j]
                    e0 += y0 * z
                    e1 += y1 * z
                    e2 += y2 * z
                    e3 += y3 * z
                for q, v in enumerate((a0, b0, c0, e0)):
                    H[k + 0, g + q] += v
                for q, v in enumerate((a1, b1, c1, e1)):
                    H[k + 1, g + q] += v
                for q, v in enumerate((a2, b2, c2, e2)):
                    H[k + 2, g + q] += v
                for q, v in enumerate((a3, b3, c3, e3)):
                    H[k + 3, g + q] += v
    for k in range(whole, n):
        x0 = X[first + k]
        for g in range(D.shape[0]):
            d0, a0 = D[g], 0.0
            for j in range(m):
                a0 += x0[j] * d0[j]
            H[k, g] = a0


@njit(inline="always")
def _tile_sums(X: Any, first: Any, n: Any, W: Any, sums: Any) -> None:
    """sums[g] += W[i, g] X[first + i] for n rows, in tiles of eight rows by two directions."""
    m = sums.shape[1]
    whole = n // 8 * 8
    for lo in range(0, m, _TILE_COLUMNS):
        hi = min(m, lo + _TILE_COLUMNS)
        for k in range(0, whole, 8):
            r = first + k
            x0, x1, x2, x3 = X[r][lo:hi], X[r + 1][lo:hi], X[r + 2][lo:hi], X[r + 3][lo:hi]
            x4, x5, x6, x7 = X[r + 4][lo:hi], X[r + 5][lo:hi], X[r + 6][lo:hi], X[r + 7][lo:hi]
            for g in range(0, sums.shape[0], 2):
                s0, s1 = sums[g][lo:hi], sums[g + 1][lo:hi]
                a0, a1, a2, a3 = W[k, g], W[k + 1, g], W[k + 2, g], W[k + 3, g]
                a4, a5, a6, a7 = W[k + 4, g], W[k + 5, g], W[k + 6, g], W[k + 7, g]
                b0, b1, b2, b3 = W[k, g + 1], W[k + 1, g + 1], W[k + 2, g + 1], W[k + 3, g + 1]
                b4, b5, b6, b7 = W[k + 4, g + 1], W[k + 5, g + 1], W[k + 6, g + 1], W[k + 7, g + 1]
                for j in range(hi - lo):
                    y0, y1, y2, y3, y4, y5, y6, y7 = x0[j], x1[j], x2[j], x3[j], x4[j], x5[j], x6[j], x7[j]
                    left = a0 * y0 + a1 * y1 + a2 * y2 + a3 * y3
                    s0[j] += left + (a4 * y4 + a5 * y5 + a6 * y6 + a7 * y7)
                    left = b0 * y0 + b1 * y1 + b2 * y2 + b3 * y3
                    s1[j] += left + (b4 * y4 + b5 * y5 + b6 * y6 + b7 * y7)
    for k in range(whole, n):
        x0 = X[first + k]
        for g in range(sums.shape[0]):
            s0, a0 = sums[g], W[k, g]
            for j in range(m):
                s0[j] += a0 * x0[j]


@njit(cache=True, nogil=True, error_model="numpy", fastmath=_FAST)
def pass_with_many(
    X: Any, lo: Any, hi: Any, block: Any, signs: Any, counts: Any, D: Any, shift: Any,
    scale: Any, offset: Any, hard: Any, out: Any, sums: Any, total: Any, loss: Any, signed: Any,
) -> None:  # fmt: skip
    """The pass over rows for four directions or a multiple of it; ``out`` keeps the first of them.

    Adds to ``sums`` (G, N), ``total``, ``loss`` and ``signed`` (G,).
    """
    H = np.empty((block, D.shape[0]))
    for first in range(lo, hi, block):
        n = min(block, hi - first)
        _tile_fields(X, first, n, D, H)
        for i in range(n):
            for g in range(D.shape[0]):
                H[i, g] = signs[first + i] * (H[i, g] - shift[g])
        if hard:
            _gate_hard(H[:n], counts[first : first + n], scale, offset, total, loss)
        else:
            _gate_soft(H[:n], counts[first : first + n], scale, offset, total, loss)
        for i in range(n):
            factor = counts[first + i] * signs[first + i]
            for g in range(out.shape[1]):
                out[first + i, g] = H[i, g]
            for g in range(D.shape[0]):
                H[i, g] *= factor
                signed[g] += H[i, g]
        _tile_sums(X, first, n, H, sums)
