"""Choose contamination, structure and start by evidence, never by clean labels.

Two measures. Within one structure: the leave-one-out likelihood of the examples, with their own pull on the
centres taken out. Between structures: the held-out log p(y | x) of the observed labels, because the
likelihood of x says little about labels and would drown what is asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from outlearn.inference.covariance import Structure, passes_for_a_sphere
from outlearn.inference.folds import content_order, folds
from outlearn.inference.mixture import Beliefs, Mixture
from outlearn.inference.mixture_data import MixtureData
from outlearn.inference.mixture_fit import MixtureFit, fit_mixture
from outlearn.inference.mixture_step import mixture_at
from outlearn.inference.outliers import believing, messages_of, start_from
from outlearn.inference.pooling import looks_spherical
from outlearn.inference.posterior import FittedMixture
from outlearn.inference.results import FitStatus

__all__ = [
    "Candidate",
    "Scored",
    "candidates_for",
    "choose",
    "climb_all",
    "likelier",
    "of_needed_forms",
    "select",
    "starts_for",
    "vouches_for_itself",
]

Array = NDArray[np.float64]

_WIDE = 0.04  # N/P above which an example may vouch for itself
_TRIAL_GRID = (0.1, 0.5, 0.8, 0.93)
_GRID_STEPS = 50  # EM steps at one fraction of the grid; the next goes on from there
_TRIAL_STEPS = 50
_SURE = 3.0  # nats by which one kind of bad examples must be likelier for the other to be left out
_ERRORS = 1.0  # standard errors within which two candidates count as equally good
_GRID = (0.02, 0.2, 0.4, 0.6, 0.7, 0.8, 0.87, 0.92, 0.96)


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One hypothesis about the data: form of the noise, kinds of bad examples, the outliers' cloud."""

    structure: Structure
    beliefs: Beliefs

    @property
    def complexity(self) -> int:
        """Rank by number of parameters; the simplest of what is as good as the best is preferred."""
        form = {"spherical": 0, "diag": 2, "tied": 4}[self.structure]
        cloud = {"shared": 0, "spread": 1, "free": 1}[self.beliefs.garbage]
        both = self.beliefs.contamination is None and self.beliefs.label_noise is None
        return 2 * form + cloud + both

    def __str__(self) -> str:
        b = self.beliefs
        return (
            f"{self.structure}, contamination {_word(b.contamination)}, label noise {_word(b.label_noise)}, "
            f"{b.garbage} garbage"
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scored:
    """A candidate, its fit and the held-out log p(y | x) of every example (``scores``)."""

    candidate: Candidate
    fit: MixtureFit
    scores: Array
    density: float
    """Held-out ln p(x, y) of all examples; comparable within one form of the noise."""
    weights: Array
    posterior: FittedMixture

    @property
    def score(self) -> float:
        """Mean held-out log p(y | x)."""
        return float(self.weights @ self.scores / self.weights.sum())

    def to_dict(self) -> dict[str, Any]:
        """Return what was tried and how well it foretold held-out labels."""
        return {
            "candidate": str(self.candidate),
            "score": self.score,
            "energy": self.fit.energy,
            "contamination": float(self.fit.mixture.states[2]),
            "label_noise": float(self.fit.mixture.states[1]),
        }


def _word(value: float | None) -> str:
    return "learned" if value is None else f"{value:g}"


def vouches_for_itself(data: MixtureData) -> bool:
    """Whether an accepted example could add much to its own log odds through the centres.

    It adds about N over the number of informative examples; a tenth of all examples is assumed.
    """
    return data.n_total * (data.n_classes - 1) > _WIDE * data.count


def climb_all(
    data: MixtureData,
    beliefs: Beliefs,
    starts: Sequence[tuple[str, Mixture | Array]],
    *,
    max_iter: int = 1000,
    tol: float = 1e-5,
    hard: bool = False,
    grid: Sequence[float] = _GRID,
) -> list[MixtureFit]:
    """Climb from every start, best first; contamination by the leave-one-out evidence if need be.

    The most probable contamination is biased where an example carries its own weight into the centres: then
    everything is accepted in the end. There contamination is read off the leave-one-out likelihood instead,
    over a ``grid`` of fractions.
    """
    unknown = [share is None for share in (beliefs.contamination, beliefs.label_noise)]
    if any(unknown) and vouches_for_itself(data):
        found = messages_of(data, beliefs)
        if found is None and not all(unknown):
            return _profiles(data, beliefs, starts, max_iter=max_iter, tol=tol, hard=hard, grid=grid)
        if found is not None:
            beliefs = believing(beliefs, found)
            starts = [("messages", start_from(data, beliefs, found)), *starts]
    fits = [
        fit_mixture(data, beliefs, start, max_iter=max_iter, tol=tol, hard=hard, name=name)
        for name, start in starts
    ]
    return sorted(fits, key=lambda fit: (fit.status is FitStatus.ALL_REJECTED, fit.energy))


def _profiles(
    data: MixtureData,
    beliefs: Beliefs,
    starts: Sequence[tuple[str, Mixture | Array]],
    *,
    max_iter: int,
    tol: float,
    hard: bool,
    grid: Sequence[float],
) -> list[MixtureFit]:
    """Fit at fixed fractions of bad examples; go on with the one of highest leave-one-out likelihood.

    The first start walks the grid of fractions, the others are tried at the fraction that it found.
    """
    flips = beliefs.label_noise is None
    given = (beliefs.contamination if flips else beliefs.label_noise) or 0.0
    top = (1.0 - given) * (1.0 - 1.0 / data.n_classes if flips else 1.0)

    def at(share: float, start: Mixture | Array, name: str, steps: int, precision: float) -> MixtureFit:
        fixed = (
            replace(beliefs, label_noise=share * top)
            if flips
            else replace(beliefs, contamination=share * top)
        )
        if isinstance(start, Mixture):
            bad = [share * top, given] if flips else [given, share * top]
            start = replace(start, states=np.array([1.0 - sum(bad), *bad]))
        return fit_mixture(data, fixed, start, max_iter=steps, tol=precision, hard=hard, name=name)

    name, start = starts[0]
    fits, values = [], []
    for share in grid:
        fit = at(share, start, name, min(_GRID_STEPS, max_iter), max(tol, 1e-3))
        if fit.status is not FitStatus.ALL_REJECTED:
            start = fit.mixture
        fits.append(fit)
        values.append(_evidence(data, fit))
    peak = int(np.argmax(values))
    share = _vertex(grid, values, peak)
    ends = [at(share, fits[peak].mixture, name, max_iter, tol)]
    ends += [at(share, start, name, max_iter, tol) for name, start in starts[1:]]
    return sorted(ends, key=lambda fit: -_evidence(data, fit))


def _evidence(data: MixtureData, fit: MixtureFit) -> float:
    if fit.status is FitStatus.ALL_REJECTED:
        return -np.inf
    if data.structure == "spherical" and fit.mixture.shared:
        # one number describes the noise: the likelihood of the inputs is safe to use and says more
        return float(data.weights @ data.log_joint(fit.mixture, leave_out=True))
    return float(data.weights @ data.log_label_given_input(fit.mixture, leave_out=True))


def _vertex(grid: Sequence[float], values: list[float], best: int) -> float:
    """Top of the parabola through the best point and its neighbours, in log odds."""
    if best in (0, len(grid) - 1) or not np.isfinite(values[best - 1 : best + 2]).all():
        return grid[best]
    x = np.log(np.array(grid[best - 1 : best + 2]) / (1.0 - np.array(grid[best - 1 : best + 2])))
    a, b, _ = np.polyfit(x - x[1], np.array(values[best - 1 : best + 2]) - values[best], 2)
    if a >= 0.0:
        return grid[best]
    return float(1.0 / (1.0 + np.exp(-(x[1] + np.clip(-b / (2 * a), x[0] - x[1], x[2] - x[1])))))


def candidates_for(
    structures: Sequence[Structure],
    *,
    contamination: float | None,
    label_noise: float | None,
    noise_variance: float | None,
    center_variance: float | None,
    garbage: str,
) -> list[Candidate]:
    """Hypotheses worth a trial: what is given stays, what is to be learned is tried simple and rich.

    Garbage and wrong labels can explain the same doubt; each alone is tried, and both together.
    """
    if contamination is None and label_noise is None:
        families: list[tuple[float | None, float | None]] = [(None, 0.0), (0.0, None), (None, None)]
    elif label_noise is None:
        families = [(contamination, 0.0), (contamination, None)]
    else:
        families = [(contamination, label_noise)]
    clouds = {"shared": ("shared",), "learned": ("free",), "auto": ("shared", "free")}[garbage]
    out = []
    for structure in structures:
        for epsilon, lam in families:
            for cloud in clouds if epsilon != 0.0 else ("shared",):
                beliefs = Beliefs(
                    contamination=epsilon,
                    label_noise=lam,
                    noise_variance=noise_variance,
                    center_variance=center_variance,
                    garbage=cloud,
                )
                out.append(Candidate(structure=structure, beliefs=beliefs))
    return out


def of_needed_forms(
    X: Any, labels: NDArray[np.intp], candidates: Sequence[Candidate], *, sample_weight: Array
) -> list[Candidate]:
    """Leave richer forms of the noise out where sharp tests find nothing that one variance does not explain.

    With little data held-out labels hardly tell the forms apart, and a variance fitted to every feature costs
    part of the direction.
    """
    spherical = [c for c in candidates if c.structure == "spherical"]
    if not spherical or len(spherical) == len(candidates) or sparse.issparse(X):
        return list(candidates)
    return spherical if passes_for_a_sphere(X, labels, sample_weight) else list(candidates)


def likelier(
    X: Any,
    labels: NDArray[np.intp],
    n_classes: int,
    candidates: Sequence[Candidate],
    *,
    sample_weight: Array,
) -> list[Candidate]:
    """Keep garbage alone, unless message passing finds wrong labels, or both together, far likelier.

    Held-out labels cannot tell them apart where they hardly tell anything; the evidence of all inputs can,
    if the model of message passing is that of the data (one variance, two classes). Where nothing else is far
    likelier, garbage alone is kept: nearly every label then counts, so that little is lost against Hebb's
    rule whatever the truth, while wrong labels fitted to chance may turn the centre anywhere.
    """
    wide = X.shape[1] > _WIDE * float(sample_weight.sum())
    if n_classes > 2 or not wide or sparse.issparse(X) or not looks_spherical(X, labels, sample_weight):
        return list(candidates)
    data = MixtureData(X, labels, n_classes, "spherical", sample_weight=sample_weight)
    garbage: tuple[float | None, float | None] = (None, 0.0)
    flips, both = (0.0, None), (None, None)

    def kind(beliefs: Beliefs) -> tuple[float | None, float | None]:
        return beliefs.contamination, beliefs.label_noise

    known = [c.beliefs for c in candidates if c.structure == "spherical" and c.beliefs.garbage == "shared"]
    found = {kind(b): messages_of(data, b) for b in known if kind(b) in (garbage, flips, both)}
    energies = {k: f.energy for k, f in found.items() if f is not None}
    if not {garbage, flips} <= energies.keys():
        return list(candidates)
    price = _SURE + 0.5 * np.log(data.count)  # half a log: the price of a fraction that is learned
    kept = flips if energies[garbage] - energies[flips] > price else garbage
    if energies[kept] - energies.get(both, np.inf) > price:
        kept = both
    return [c for c in candidates if kind(c.beliefs) == kept]


def starts_for(
    data: MixtureData,
    beliefs: Beliefs,
    n_init: int,
    rng: np.random.Generator,
    before: Sequence[tuple[str, Array]] = (),
) -> list[tuple[str, Mixture | Array]]:
    """Hebb, the leading directions of the data (where labels may be wrong), random ones, and given ones."""
    hebb = data.hebb
    out: list[tuple[str, Mixture | Array]] = [("hebb", mixture_at(data, beliefs, hebb))]
    out += list(before)
    length = np.linalg.norm(hebb)
    if beliefs.label_noise is None or beliefs.label_noise > 0.0:
        out.append(("spectral", mixture_at(data, beliefs, _leading(data))))
    for _ in range(n_init - 1):
        direction = rng.standard_normal(hebb.shape)
        direction = 0.5 * hebb / length + direction / np.linalg.norm(direction)
        out.append(("random", mixture_at(data, beliefs, direction * length)))
    return out


def _leading(data: MixtureData, steps: int = 12) -> Array:
    """Leading directions of the data by orthogonal iteration from Hebb's, as long as the data are wide."""
    rows = data.rows
    basis = np.linalg.qr(data.hebb.T)[0].T
    value = 0.0
    for _ in range(steps):
        weights = rows.fields(basis) * data.weights[:, None]
        product = rows.weighted_sums(weights)
        basis, r = np.linalg.qr(product.T)
        basis = basis.T
        value = float(np.abs(np.diag(r)).mean()) / data.count
    # the same frame as Hebb's, so that classes keep their names
    u, _, v = np.linalg.svd(data.hebb @ basis.T, full_matrices=False)
    excess = max(value - data.variance, 0.1 * value)
    return np.asarray(np.sqrt(excess * (data.n_classes - 1)) * (u @ v) @ basis)


def held_out_scores(
    data: MixtureData, fit: MixtureFit, beliefs: Beliefs, fold: NDArray[np.intp], *, max_iter: int, tol: float
) -> tuple[Array, float]:
    """Log p(y | x) of every example under the fit to the other folds, started from the fit to all.

    The sum of ln p(x, y) comes with it.

    Fractions and prior variance stay as all the data have them: what is compared is where the
    centres go.
    """
    scores, density = np.zeros(len(fold)), 0.0
    m = fit.mixture
    fixed = replace(
        beliefs,
        contamination=float(m.states[2]),
        label_noise=float(m.states[1]),
        center_variance=float(m.center_variance),
    )
    for f in range(int(fold.max()) + 1):
        out = fold == f
        rest = data.held_out(np.where(out, 0.0, data.weights))
        if (rest.label_weights.sum(axis=0) <= 0.0).any():
            scores[out] = -np.log(data.n_classes)
            continue
        refit = fit_mixture(rest, fixed, m, max_iter=max_iter, tol=tol)
        scores[out] = rest.log_label_given_input(refit.mixture)[out]
        density += float((data.weights * rest.log_joint(refit.mixture))[out].sum())
    return scores, density


def choose(scored: Sequence[Scored]) -> Scored:
    """Simplest candidate whose held-out score is within one standard error of the best one's."""
    best = max(scored, key=lambda s: s.score)
    weights = best.weights
    total = weights.sum()

    def close(s: Scored) -> bool:
        gap = best.scores - s.scores
        mean = float(weights @ gap) / total
        variance = float(weights @ (gap - mean) ** 2) / total
        return mean <= _ERRORS * np.sqrt(variance / total)

    return min((s for s in scored if close(s)), key=lambda s: (s.candidate.complexity, -s.score))


def _asked_for(richer: Scored, leader: Scored, data: MixtureData) -> bool:
    """Whether held-out inputs ask for a cloud of the outliers' own, where labels may do so by chance.

    Its middle is as many numbers as there are features.
    """
    if richer.candidate.beliefs.garbage == "shared" or not vouches_for_itself(data):
        return True
    return richer.density > leader.density + _SURE


def select(
    X: Any,
    labels: NDArray[np.intp],
    n_classes: int,
    candidates: Sequence[Candidate],
    *,
    sample_weight: Array,
    n_init: int,
    rng: np.random.Generator,
    n_folds: int = 3,
    max_cells: int = 500_000,
) -> list[Scored]:
    """Fit every candidate to (a subset of) the data and score it by the held-out labels.

    Candidates are met from simple to rich. A richer one also starts from where a simpler one ended: with
    most labels wrong a full covariance falls into bad optima that a diagonal one avoids. Garbage and wrong
    labels together, and a garbage cloud of its own, are tried on the winning form of the noise only.
    """
    groups, order = content_order(X, labels)
    keep = len(labels)
    if X.shape[0] * X.shape[1] > max_cells:
        keep = max(max_cells // X.shape[1], 50 * n_classes)
    if keep < len(labels):
        chosen = np.sort(order[:keep])
        X, labels, sample_weight, groups = X[chosen], labels[chosen], sample_weight[chosen], groups[chosen]
    fold = folds(X, labels, n_folds)
    spaces: dict[str, MixtureData] = {}

    def score(candidate: Candidate, before: Sequence[Scored]) -> Scored | None:
        form, beliefs = candidate.structure, candidate.beliefs
        if form not in spaces:
            spaces[form] = MixtureData(X, labels, n_classes, form, sample_weight=sample_weight)
        data = spaces[form]
        ends = [
            (s.candidate.structure, spaces[s.candidate.structure].responsibilities(s.fit.mixture))
            for s in before
        ]
        if beliefs.garbage != "shared" and ends:
            starts: list[tuple[str, Mixture | Array]] = list(ends)
        else:
            starts = starts_for(data, beliefs, n_init, rng, ends)
        best = climb_all(data, beliefs, starts, max_iter=_TRIAL_STEPS, tol=3e-3, grid=_TRIAL_GRID)[0]
        if best.status is FitStatus.ALL_REJECTED:
            return None
        scores, density = held_out_scores(data, best, beliefs, fold, max_iter=12, tol=3e-3)
        return Scored(
            candidate=candidate,
            fit=best,
            scores=scores,
            density=density,
            weights=sample_weight,
            posterior=FittedMixture.of(data, best.mixture),
        )

    def is_plain(candidate: Candidate) -> bool:
        beliefs = candidate.beliefs
        both = beliefs.contamination is None and beliefs.label_noise is None
        return beliefs.garbage == "shared" and not both

    ordered = sorted(candidates, key=lambda c: c.complexity)
    plain = [c for c in ordered if is_plain(c)] or ordered
    scored: list[Scored] = []
    for candidate in plain:
        # from where the best fit of a simpler form with the same kinds of bad examples ended
        kin = [
            s
            for s in scored
            if s.candidate.structure != candidate.structure and s.candidate.beliefs == candidate.beliefs
        ]
        found = score(candidate, sorted(kin, key=lambda s: -s.score)[:1])
        if found is not None:
            scored.append(found)
    if scored and len(plain) < len(ordered):
        leader = choose(scored)
        for candidate in ordered:
            if not is_plain(candidate) and candidate.structure == leader.candidate.structure:
                found = score(candidate, [leader])
                if found is not None and _asked_for(found, leader, spaces[candidate.structure]):
                    scored.append(found)
    return scored
