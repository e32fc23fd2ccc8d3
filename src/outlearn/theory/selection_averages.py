"""Averages of the selection losses over a Gaussian local field, in compiled code.

With ``a = m + sd x`` every selection rule has an envelope ``L(a; b)``, minus the Moreau envelope of its loss.
One routine per rule returns its eleven averages over x ~ N(0, 1), jumps of the proximal operator included as
boundary terms, so that the second derivatives of ``G(m, sd, b) = <L>`` are exact:

====  ==========  ==================  =====  ==========  ===========
 0     <L>         G                   6      <x² L_aa>   G_sd,sd
 1     <L_a>       G_m                 7      <L_ab>      G_m,b
 2     <x L_a>     G_sd                8      <x L_ab>    G_sd,b
 3     <L_b>       G_b                 9      <L_bb>      G_b,b
 4     <L_aa>      G_m,m              10      <L_aa²>     (stability)
 5     <x L_aa>    G_m,sd
====  ==========  ==================  =====  ==========  ===========
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from outlearn.numerics.proximal import sigmoid_prox_scalar

__all__ = ["EXACT_SOFT", "HARD", "HEBB", "PRINTED_SOFT", "averages"]

EXACT_SOFT, PRINTED_SOFT, HARD, HEBB = 0, 1, 2, 3

_ROOT_2PI = math.sqrt(2.0 * math.pi)
_LIMIT = 10.0  # the mass beyond is below 2e-23
_PANEL = 4.0  # widest panel in x
_FAR = 40.0  # beyond this the sigmoid is 0 or 1 to rounding
_STEEP = (0.0, 3.0, 8.0, 18.0, _FAR)  # where panels end along the sigmoid's argument
_GRADED = (1.0, 0.3, 0.1, 0.03, 0.01)  # more ends towards the cusp at b = 4


@njit(cache=True, nogil=True)
def _sigmoid(s: float) -> float:
    if s >= 0.0:
        return 1.0 / (1.0 + math.exp(-s))
    e = math.exp(s)
    return e / (1.0 + e)


@njit(cache=True, nogil=True)
def _softplus(s: float) -> float:
    return (s if s > 0.0 else 0.0) + math.log1p(math.exp(-abs(s)))


@njit(cache=True, nogil=True)
def _panel_ends(m, sd, b, half, graded, x, s):  # type: ignore[no-untyped-def]
    """Fill x and s with panel ends (sorted) where a = m + sd x and s = prox(a); return how many.

    The prox has no value between -half and half: where it jumps, two ends share one x.
    """
    x[0], s[0] = -_LIMIT, sigmoid_prox_scalar(m - sd * _LIMIT, b)
    count = 1
    if half > 0.0:
        edge = (-0.5 * b - m) / sd
        if abs(edge) < _LIMIT:
            x[1], s[1], x[2], s[2] = edge, -half, edge, half
            count = 3
    total = len(_STEEP) + (len(_GRADED) if graded else 0)
    for i in range(total):
        end = _STEEP[i] if i < len(_STEEP) else _GRADED[i - len(_STEEP)]
        for side in range(2):
            if (end == 0.0 and side == 1) or (half > 0.0 and end <= half):
                continue
            at = end if side == 0 else -end
            where = (at - b * _sigmoid(at) - m) / sd
            if abs(where) < _LIMIT:
                x[count], s[count] = where, at
                count += 1
    for i in range(1, count):  # insertion sort: the list is short
        xi, si, j = x[i], s[i], i - 1
        while j >= 0 and (x[j] > xi or (x[j] == xi and s[j] > si)):
            x[j + 1], s[j + 1] = x[j], s[j]
            j -= 1
        x[j + 1], s[j + 1] = xi, si
    x[count], s[count] = _LIMIT, sigmoid_prox_scalar(m + sd * _LIMIT, b)
    return count + 1


@njit(cache=True, nogil=True)
def _exact_soft(m, sd, b, pieces, fully, nodes, weights, g):  # type: ignore[no-untyped-def]
    """Exact envelope: L_a = sigma(s) with s = a + b sigma(s), L_b = sigma²/2.

    Where the sigmoid turns, the integration variable is s, not x: ``da = (1 - b sigma') ds`` cancels the
    denominator of ``L_aa = sigma'/(1 - b sigma')``, so nothing is singular at the cusp b = 4 and no root has
    to be found at the nodes.
    """
    x_end, s_end = np.empty(32), np.empty(32)
    jump = b > 4.0
    half = sigmoid_prox_scalar(-0.5 * b, b) if jump else 0.0
    count = _panel_ends(m, sd, b, half, fully, x_end, s_end)
    for i in range(count - 1):
        gap = x_end[i + 1] - x_end[i]
        if not gap > 0.0:
            continue
        by_s = sd > 1e-3 and abs(s_end[i]) <= _FAR and abs(s_end[i + 1]) <= _FAR and b < 200.0
        parts = math.ceil(gap / _PANEL) * pieces
        high = s_end[i] if by_s else x_end[i]
        for part in range(parts):
            low = high
            high = x_end[i] + gap * (part + 1) / parts
            if by_s:
                high = s_end[i + 1] if part == parts - 1 else sigmoid_prox_scalar(m + sd * high, b)
            for k in range(nodes.size):
                t = low + 0.5 * (high - low) * (1.0 + nodes[k])
                s = t if by_s else sigmoid_prox_scalar(m + sd * t, b)
                e = math.exp(-abs(s))
                p = 1.0 / (1.0 + e)
                slope = p * p * e
                if s < 0.0:
                    p *= e
                lag = 1.0 - b * slope
                x = (s - b * p - m) / sd if by_s else t
                w = 0.5 * (high - low) * weights[k] * math.exp(-0.5 * x * x) / _ROOT_2PI
                if by_s:
                    dw = w * slope / sd
                    w *= lag / sd
                else:
                    dw = w * slope / lag
                g[1] += w * p
                g[2] += w * x * p
                g[3] += 0.5 * w * p * p
                g[4] += dw
                g[5] += dw * x
                g[6] += dw * x * x
                g[7] += dw * p
                g[8] += dw * x * p
                g[9] += dw * p * p
                if fully:
                    g[0] += w * (max(s, 0.0) + math.log1p(e) - 0.5 * b * p * p)
                    g[10] += dw * slope / lag if lag > 0.0 else math.inf
    if jump:
        _add_jump((-0.5 * b - m) / sd, sd, math.tanh(0.5 * half), 0.5, g)


@njit(cache=True, nogil=True)
def _add_jump(edge, sd, height, rate, g):  # type: ignore[no-untyped-def]
    """Boundary terms of an L_a that jumps by ``height`` at x = edge, which moves by -rate/sd with b."""
    density = height * math.exp(-0.5 * edge * edge) / (_ROOT_2PI * sd)
    if density > 0.0:
        g[4] += density
        g[5] += density * edge
        g[6] += density * edge * edge
        g[7] += density * rate
        g[8] += density * edge * rate
        g[9] += density * rate * rate
        g[10] = math.inf


@njit(cache=True, nogil=True)
def _printed_soft(m, sd, b, pieces, nodes, weights, g):  # type: ignore[no-untyped-def]
    """The paper's I_1..I_7: L = ln(1+e^a) + (b/2) sigma²/(1 - b sigma'), singular for b >= 4."""
    if b >= 4.0:
        g[:] = np.nan
        return
    x_end, s_end = np.empty(32), np.empty(32)
    count = _panel_ends(m, sd, 0.0, 0.0, True, x_end, s_end)
    for i in range(count - 1):
        gap = x_end[i + 1] - x_end[i]
        if not gap > 0.0:
            continue
        parts = math.ceil(gap / _PANEL) * pieces
        width = gap / parts
        for piece in range(parts):
            for k in range(nodes.size):
                x = x_end[i] + width * (piece + 0.5 * (1.0 + nodes[k]))
                w = 0.5 * width * weights[k] * math.exp(-0.5 * x * x) / _ROOT_2PI
                a = m + sd * x
                p, r = _sigmoid(a), _sigmoid(-a)
                d1 = p * r
                d2 = d1 * (r - p)
                d3 = d1 * (r - p) * (r - p) - 2.0 * d1 * d1
                lag = 1.0 - b * d1
                i1 = p * p / lag
                rise = 2.0 * r + b * d2 / lag
                i2 = i1 * rise
                i2_a = i2 * rise + i1 * (-2.0 * d1 + b * d3 / lag + (b * d2 / lag) ** 2)
                l_a = p + 0.5 * b * i2
                l_aa = d1 + 0.5 * b * i2_a
                l_b = 0.5 * (p / lag) ** 2
                l_ab = l_b * (2.0 * r + 2.0 * b * d2 / lag)
                g[0] += w * (_softplus(a) + 0.5 * b * i1)
                g[1] += w * l_a
                g[2] += w * x * l_a
                g[3] += w * l_b
                g[4] += w * l_aa
                g[5] += w * x * l_aa
                g[6] += w * x * x * l_aa
                g[7] += w * l_ab
                g[8] += w * x * l_ab
                g[9] += w * l_b * 2.0 * d1 / lag
                g[10] += w * l_aa * l_aa


@njit(cache=True, nogil=True)
def _hard(m, sd, b, rate, g):  # type: ignore[no-untyped-def]
    """L = max(0, a + rate b): every average is an error function (rate 1/2; in print 1/4)."""
    edge = -(m + rate * b) / sd
    chosen = 0.5 * math.erfc(edge / math.sqrt(2.0))
    density = math.exp(-0.5 * edge * edge) / _ROOT_2PI
    g[0] = sd * (density - edge * chosen)
    g[1] = chosen
    g[2] = density
    g[3] = rate * chosen
    _add_jump(edge, sd, 1.0, rate, g)


@njit(cache=True, nogil=True)
def averages(rule, m, sd, b, rate, everything, pieces, fully, nodes, weights, g):  # type: ignore[no-untyped-def]
    """Fill g with the eleven averages of one rule; without ``fully``, <L> and <L_aa²> may be left out.

    ``everything`` means that no example is ever doubted.
    """
    g[:] = 0.0
    if rule == HEBB or everything:
        g[0] = m + rate * b
        g[1] = 1.0
        g[3] = rate
    elif rule == EXACT_SOFT:
        _exact_soft(m, sd, b, pieces, fully, nodes, weights, g)
    elif rule == PRINTED_SOFT:
        _printed_soft(m, sd, b, pieces, nodes, weights, g)
    else:
        _hard(m, sd, b, rate, g)
