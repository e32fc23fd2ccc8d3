"""The classifier to begin with: several learners are tried, held-out labels decide, ties are pooled."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import softmax
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if

from outlearn.estimators.base import SelectionClassifier, _within_jobs
from outlearn.estimators.bayes import BayesSelectionClassifier
from outlearn.estimators.hebb import HebbClassifier
from outlearn.estimators.soft import SoftSelectionClassifier
from outlearn.exceptions import DataError, ParameterError
from outlearn.inference.evidence import content_order, folds
from outlearn.inference.pooling import Calibration, behind, calibrate, looks_spherical, stacking_weights
from outlearn.inference.results import FitStatus
from outlearn.inference.robust_logistic import SHARES, RobustLogistic, label_loss, tuned_robust_logistic

__all__ = ["AutoSelectionClassifier", "MemberScore", "MemberTable"]

Array = NDArray[np.float64]
Labels = NDArray[np.intp]

_MEMBERS = ("hebb", "lda", "soft", "bayes", "logistic", "robust logistic")
_MAX_CELLS = 1_000_000  # numbers looked at while members are compared; the final fits see everything
_WIDEST_TIED = 600
_SAME_SCALE = 1.5  # sampling errors by which log variances may scatter and still count as equal
_SAYS_SOMETHING = 1.5  # standard errors that the best rule must be better than none
_CLEARLY_BEHIND = 2.0  # standard errors that another rule must be better than the posterior mean
_FLAT = 100.0  # prior variance of a centre, in standard units, that holds nothing back
_TOO_LITTLE = 0.05  # weight below which a member is left out of the pool


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberScore:
    """What one member was found to be worth."""

    name: str
    held_out: float
    """Mean ln p(y | x) of observed labels that the member had not seen, brought to one calibration."""
    behind: float
    """Standard errors behind the best member."""
    weight: float
    """Share in the pooled rule."""
    contamination: float
    detail: str

    def to_dict(self) -> dict[str, Any]:
        """Return the fields."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberTable:
    """All members that were tried, best first."""

    rows: tuple[MemberScore, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the rows as dictionaries."""
        return {"rows": [row.to_dict() for row in self.rows]}

    def to_frame(self) -> pd.DataFrame:
        """One row per member."""
        return pd.DataFrame([row.to_dict() for row in self.rows])

    def __repr__(self) -> str:
        lines = [f"{'member':<16} {'held-out ln p':>13} {'behind':>7} {'weight':>6} {'contam.':>7}  detail"]
        lines += [
            f"{r.name:<16} {r.held_out:>13.4f} {r.behind:>6.1f}σ {r.weight:>6.2f} {r.contamination:>7.2f}  "
            f"{r.detail}"
            for r in self.rows
        ]
        return "\n".join(lines)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Member:
    """One learner after its fit to all: a linear rule, and what it says of outliers."""

    name: str
    coef: Array
    intercept: Array
    contamination: float
    detail: str
    n_iter: int
    selector: SelectionClassifier | None
    """The fitted classifier, where it has a model of the inputs."""

    @property
    def selects(self) -> bool:
        """Whether the member itself tells informative examples from others."""
        return self.selector is not None and bool(self.selector.model_.mixture.states[0] < 1.0 - 1e-6)

    def scores(self, Z: Any) -> Array:
        """(P, 1) log odds of the second of two classes, or (P, K) class scores."""
        return np.asarray(Z @ self.coef.T, dtype=np.float64) + self.intercept


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Tried:
    """A member and how it did on the examples that its fits to parts had not seen."""

    member: Member
    held_out: Array
    own: Array | None = None
    """ln p(y | x) as the member itself has it, garbage-like inputs included."""


class AutoSelectionClassifier(SelectionClassifier):
    """Learn a linear rule from contaminated labels, whatever the contamination: the default choice.

    Members are tried side by side: Hebb's rule, linear discriminant analysis, soft selection, the
    Bayes-optimal classifier, and logistic regression without and with garbage in its labels. They are
    compared by how well they foretell held-out labels, as observed; clean labels are never needed. Their
    rules are pooled with the weights of stacking. Where the features look like the model's (independent, of
    one variance) the Bayes-optimal rule is used alone, unless another is clearly better on held-out labels.
    Where these say next to nothing (little data, mostly garbage) on other features, the rule that learns
    least from them is trusted: Hebb's.

    Parameters
    ----------
    members : tuple of str
        Which to try, of "hebb", "lda", "soft", "bayes", "logistic", "robust logistic".
    contamination : float or "auto"
        Fraction of outliers, if known.
    pool : bool
        Pool the members with the weights of stacking; otherwise the best alone decides.
    n_folds : int
        Parts into which the data are dealt out for comparison.
    max_iter, tol, random_state, n_jobs
        As in :class:`~outlearn.SoftSelectionClassifier`.

    Attributes
    ----------
    winner_, reason_ : str
        Name of the member with the largest weight, and why it has it.
    members_ : MemberTable
        Held-out score, weight and estimate of every member, best first; prints as a table.
    coef_, intercept_ : arrays
        The pooled linear rule, in the units of the data.
    contamination_ : float
        The winner's estimate; for a member without a model of the inputs the share of labels that are coins.
    inlier_proba_ : array (n_samples,)
        Probability that each training example is informative and rightly labelled, judged by fits that did
        not see it (or with its own pull taken out); zero where ``sample_weight`` is zero.
    label_contamination_ : float
        Share of labels that count as coins in ``predict_proba``.
    units_ : Units
        What brings the data to standard units, in which the members work.
    pool_, weights_ : tuple of Member, array
        The fitted members, and their shares in the pooled rule.
    n_iter_ : int
        Iterations of the winner.
    count_ : float
        Number of training examples, weights counted.
    classes_, n_features_in_, feature_names_in_

    Examples
    --------
    >>> from outlearn import Ensemble, sample
    >>> data = sample(Ensemble.from_contamination(0.8, gamma=10.0), 30, 600, rng=0)
    >>> model = AutoSelectionClassifier(random_state=0).fit(data.X, data.y)
    >>> model.winner_ in {"soft", "bayes"}
    True
    >>> bool(model.inlier_proba_[data.informative].mean() > 2 * model.inlier_proba_[~data.informative].mean())
    True
    """

    covariance: ClassVar[str] = "auto"
    noise_variance: ClassVar[str] = "auto"
    center_variance: ClassVar[str] = "auto"

    def __init__(
        self,
        members: tuple[str, ...] = _MEMBERS,
        *,
        contamination: Any = "auto",
        pool: bool = True,
        n_folds: int = 5,
        max_iter: int = 1000,
        tol: float = 1e-5,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.members = members
        self.contamination = contamination
        self.pool = pool
        self.n_folds = n_folds
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs

    @available_if(lambda self: False)
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Any:
        """Not offered: members are compared on data they have not seen."""

    # -- fitting -------------------------------------------------------------------------------------

    @_within_jobs
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> AutoSelectionClassifier:
        """Try all members on contaminated labelled data, and pool the best.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
        y : array of shape (n_samples,)
            Labels of two or more classes, many of them possibly meaningless.
        sample_weight : array of shape (n_samples,), optional
            Multiplicity of each example.

        Returns
        -------
        self
        """
        self._check_parameters()
        X, labels, weights, kept, n_samples = self._training_set(X, y, sample_weight)
        self.units_ = Units.of(X, labels, weights)
        trial = _Trial.of(self, self.units_.inward(X), labels, weights)
        tried = trial.run()
        self._choose(trial, tried)
        self.inlier_proba_ = np.zeros(n_samples)
        self.inlier_proba_[kept] = self._judge_training_set(trial, tried)
        winner = self.pool_[self._order[0]].selector
        if winner is not None and getattr(winner, "status_", None) is FitStatus.MAX_ITER:
            warnings.warn(
                f"the winning member, {self.winner_}, did not converge in {self.max_iter} iterations: raise "
                f"max_iter, or tol (now {self.tol:g}).",
                ConvergenceWarning,
                stacklevel=3,
            )
        return self

    def _choose(self, trial: _Trial, tried: list[_Tried]) -> None:
        """Weigh the members by held-out labels, and pool their rules into one."""
        labels, weights = trial.labels[trial.shown], trial.weights[trial.shown]
        self.pool_ = tuple(t.member for t in tried)
        if trial.compared:
            self.calibrations_ = tuple(calibrate(t.held_out, labels, weights) for t in tried)
            verdict = _weigh(trial, tried, self.calibrations_, self.pool)
            gains = verdict.weights * verdict.units
            pooled = np.asarray(sum(g * t.held_out for g, t in zip(gains, tried, strict=True)))
            final = calibrate(pooled, labels, weights)
            scale, self.label_contamination_ = final.slope, final.contamination
        else:
            unknown = np.full(len(labels), np.nan)
            fair = np.full(trial.n_classes, 1.0 / trial.n_classes)
            self.calibrations_ = (Calibration(slope=1.0, contamination=0.0, coin=fair, log_proba=unknown),)
            one = np.ones(1)
            reason = "a class has too few examples to compare members"
            verdict = _Verdict(weights=one, units=one, held_out=one * np.nan, behind=one * 0.0, reason=reason)
            gains, scale, self.label_contamination_ = one, 1.0, 0.0
        coef = sum(g * t.member.coef for g, t in zip(gains, tried, strict=True))
        shift = sum(g * t.member.intercept for g, t in zip(gains, tried, strict=True))
        self.coef_, self.intercept_ = self.units_.outward(scale * np.asarray(coef), scale * np.asarray(shift))
        self.weights_, self.reason_ = verdict.weights, verdict.reason
        # what the pool leaves out is named after what is in it
        order = sorted(range(len(tried)), key=lambda i: (-self.weights_[i], -verdict.held_out[i]))
        rows = []
        for i in order:
            member, c = tried[i].member, self.calibrations_[i]
            rows.append(
                MemberScore(
                    name=member.name,
                    held_out=float(verdict.held_out[i]),
                    behind=float(verdict.behind[i]),
                    weight=float(self.weights_[i]),
                    contamination=float(member.contamination if member.selects else c.contamination),
                    detail=member.detail,
                )
            )
        self._rank(MemberTable(rows=tuple(rows)))

    def _rank(self, table: MemberTable) -> None:
        """Set what follows from the table of members."""
        self.members_ = table
        names = [m.name for m in self.pool_]
        self._order = [names.index(row.name) for row in table.rows]
        self.winner_ = table.rows[0].name
        self.contamination_ = table.rows[0].contamination
        self.n_iter_ = max(1, self.pool_[self._order[0]].n_iter)

    def _judge_training_set(self, trial: _Trial, tried: list[_Tried]) -> Array:
        out = np.zeros(len(trial.labels))
        for w, c, t in zip(self.weights_, self.calibrations_, tried, strict=True):
            if w == 0.0:
                continue
            if t.member.selects:
                assert t.member.selector is not None
                out += w * t.member.selector.inlier_proba_
            else:
                scores = t.member.scores(trial.Z)
                if trial.compared:
                    scores[trial.shown] = t.held_out
                out += w * _informative(c, scores, trial.labels, trial.count)
        self.count_ = trial.count
        return out

    def _check_parameters(self) -> None:
        known = isinstance(self.members, tuple | list) and all(m in _MEMBERS for m in self.members)
        if not known or not self.members:
            raise ParameterError("members", self.members, f"one or more of {', '.join(_MEMBERS)}")
        c = self.contamination
        if c != "auto" and (
            isinstance(c, bool | str) or not isinstance(c, Real) or not 0.0 <= float(c) < 1.0
        ):
            raise ParameterError("contamination", c, "'auto' or a number with 0 <= value < 1")
        for name, least in (("n_folds", 2), ("max_iter", 1)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
                raise ParameterError(name, value, f"a whole number >= {least}")
        if isinstance(self.tol, bool | str) or not isinstance(self.tol, Real) or not 0.0 < self.tol < 1.0:
            raise ParameterError("tol", self.tol, "0 < tol < 1")

    # -- use -----------------------------------------------------------------------------------------

    def predict_proba(self, X: Any) -> Array:
        """p(y | x) on the contaminated stream: a share ``label_contamination_`` of labels are coins."""
        scores = self.decision_function(X)
        e, k = self.label_contamination_, len(self.classes_)
        if scores.ndim == 1:
            scores = np.column_stack([np.zeros_like(scores), scores])
        return np.asarray((1.0 - e) * softmax(scores, axis=1) + e / k)

    @_within_jobs
    def inlier_proba(self, X: Any, y: Any) -> Array:
        """Probability that each labelled example is informative and bears the right label."""
        X = self._input(X)
        labels = self._labels(X, y)
        Z = self.units_.inward(X)
        out = np.zeros(len(labels))
        for w, c, m in zip(self.weights_, self.calibrations_, self.pool_, strict=True):
            if w > 0.0 and m.selects:
                assert m.selector is not None
                out += w * m.selector.model_.inlier_proba(Z, labels)
            elif w > 0.0:
                out += w * _informative(c, m.scores(Z), labels, self.count_)
        return out

    @_within_jobs
    def score_samples(self, X: Any) -> Array:
        """Log density ln p(x) of every row under the best member that has a model of the inputs."""
        X = self._input(X)
        for i in self._order:
            selector = self.pool_[i].selector
            if selector is not None:
                return selector.model_.log_density(self.units_.inward(X)) - self.units_.log_volume
        raise DataError("no member of this fit has a model of the inputs; add 'soft' or 'bayes' to members")

    def _labels(self, X: Any, y: Any) -> Labels:
        y = np.asarray(y)
        if y.shape != (X.shape[0],):
            raise DataError(f"y has shape {y.shape}; X has {X.shape[0]} rows")
        unknown = np.setdiff1d(y, self.classes_)
        if unknown.size:
            raise DataError(f"y holds labels that were not seen in fit: {unknown[:5].tolist()}")
        return np.searchsorted(self.classes_, y).astype(np.intp)

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        text: str = super().__repr__(N_CHAR_MAX)
        return f"{text}: {self.winner_}, since {self.reason_}" if hasattr(self, "winner_") else text


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Verdict:
    """What the comparison came to: one entry per member."""

    weights: Array
    units: Array
    """What brings the members' scores to one scale before they are added."""
    held_out: Array
    behind: Array
    reason: str


def _weigh(trial: _Trial, tried: list[_Tried], calibrations: tuple[Calibration, ...], pool: bool) -> _Verdict:
    """Weight of every member, how far behind the best it is, and why, in words."""
    labels, weights = trial.labels[trial.shown], trial.weights[trial.shown]
    # a member that knows garbage by its input may foretell labels better than its rule alone
    logs = np.array(
        [
            c.log_proba if t.own is None or weights @ t.own <= weights @ c.log_proba else t.own
            for t, c in zip(tried, calibrations, strict=True)
        ]
    )
    frequencies = np.bincount(labels, weights, trial.n_classes) / weights.sum()
    z = behind(logs, weights)
    gain = float(behind(np.vstack([logs, np.log(frequencies[labels])]), weights)[-1])
    names = [t.member.name for t in tried]
    order = np.argsort(z)
    units = np.array([c.slope for c in calibrations])
    out = np.zeros(len(tried))
    trusted: tuple[str, ...] = ()
    if "bayes" in names and z[names.index("bayes")] < _CLEARLY_BEHIND and trial.looks_spherical():
        trusted = ("bayes",)
        reason = "the features look like the model's, where no rule beats the posterior mean"
    elif gain < _SAYS_SOMETHING and any(t.member.selects for t in tried):
        trusted = ("hebb",) if "hebb" in names else tuple(names)
        reason = (
            f"held-out labels say next to nothing (the best rule gains {gain:.1f} standard errors): there "
            "the rule that needs to learn least is safest"
        )
    if trusted:
        out = np.array([float(name in trusted) for name in names])
        spread = [np.sqrt(weights @ (t.held_out**2).mean(axis=1) / weights.sum()) for t in tried]
        units = 1.0 / np.maximum(spread, 1e-300)
    else:
        if pool:
            out = stacking_weights(logs, weights)
            out[out < _TOO_LITTLE] = 0.0
        else:
            out[order[0]] = 1.0
        rest = ", ".join(f"{names[i]} ({z[i]:.1f})" for i in order[1:])
        reason = f"held-out labels: {names[order[0]]} leads" + (f" {rest} by so many σ" if rest else "")
    return _Verdict(
        weights=out / out.sum(), units=units, held_out=logs @ weights / weights.sum(), behind=z, reason=reason
    )


def _informative(c: Calibration, scores: Array, labels: Labels, count: float) -> Array:
    """Probability that a label is no coin; a pinch of coins, so that clean data are ranked by doubt too."""
    e = max(c.contamination, 1.0 / (count + 2.0))
    loss = label_loss(c.slope * scores, labels, e, c.coin)[0]
    return np.asarray(np.clip(1.0 - e * c.coin[labels] * np.exp(loss), 0.0, 1.0))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Units:
    """Standard units: one scale for all features where their variances differ by chance only."""

    center: Array
    scale: Array

    @classmethod
    def of(cls, X: Any, labels: Labels, weights: Array) -> Units:
        """Mean and standard deviation of every feature; sparse data are not centred.

        The signal adds to a feature's variance in proportion to that between labels. That much is no
        difference in scale: it is regressed out before scales are compared.
        """
        total = float(weights.sum())
        members = np.zeros((len(labels), labels.max() + 1))
        members[np.arange(len(labels)), labels] = weights
        counts = members.sum(axis=0)
        sums = np.asarray(X.T @ members, dtype=np.float64)
        mean = sums.sum(axis=1) / total
        between = (sums**2 / np.maximum(counts, 1e-300)).sum(axis=1) / total - mean**2
        if sparse.issparse(X):
            square = np.asarray(X.multiply(X).T @ weights, dtype=np.float64).ravel() / total
            variance = np.maximum(square - mean**2, 1e-12 * square)
            mean = np.zeros_like(mean)
        else:
            variance = weights @ (np.asarray(X, dtype=np.float64) - mean) ** 2 / total
        rest = variance - _slope(between, variance) * between
        logs = np.log(np.maximum(rest, 1e-3 * variance))
        if logs.std() < _SAME_SCALE * np.sqrt(2.0 / total):
            variance = np.full_like(variance, np.exp(logs.mean()))
        return cls(center=mean, scale=np.sqrt(variance))

    @property
    def log_volume(self) -> float:
        """Sum of ln scale."""
        return float(np.log(self.scale).sum())

    def inward(self, X: Any) -> Any:
        """Data in standard units."""
        if sparse.issparse(X):
            return (X @ sparse.diags(1.0 / self.scale)).tocsr()
        return (np.asarray(X, dtype=np.float64) - self.center) / self.scale

    def outward(self, coef: Array, intercept: Array) -> tuple[Array, Array]:
        """Turn a linear rule in standard units into one in the units of the data."""
        coef = coef / self.scale
        return coef, intercept - coef @ self.center


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Trial:
    """The data in standard units, dealt out, and the members' fits to all and to parts."""

    Z: Any
    labels: Labels
    weights: Array
    shown: Labels
    fold: Labels
    n_classes: int
    seed: int
    settings: AutoSelectionClassifier

    @classmethod
    def of(cls, settings: AutoSelectionClassifier, Z: Any, labels: Labels, weights: Array) -> _Trial:
        k = len(settings.classes_)
        groups, order = content_order(Z, labels)
        shown = np.sort(order[: max(_MAX_CELLS // Z.shape[1], 50 * k)])
        fewest = min(len(np.unique(groups[shown][labels[shown] == c])) for c in range(k))
        n_folds = min(settings.n_folds, fewest)
        fold = np.zeros(len(shown), dtype=np.intp)
        if n_folds > 1:
            fold = folds(Z[shown], labels[shown], n_folds)
        seed = int(check_random_state(settings.random_state).randint(2**31 - 1))
        return cls(
            Z=Z,
            labels=labels,
            weights=weights,
            shown=shown,
            fold=fold,
            n_classes=k,
            seed=seed,
            settings=settings,
        )

    @property
    def compared(self) -> bool:
        """Whether there are enough examples of every class to hold some out."""
        return bool(self.fold.max() > 0)

    def looks_spherical(self) -> bool:
        """Whether the features are as the Bayes-optimal member has them: independent, of one variance."""
        if sparse.issparse(self.Z):
            return False
        return looks_spherical(self.Z[self.shown], self.labels[self.shown], self.weights[self.shown])

    @property
    def count(self) -> float:
        """Number of examples, weights counted."""
        return float(self.weights.sum())

    def run(self) -> list[_Tried]:
        """Fit the members that suit the data to all and to parts; members that fail are left out."""
        if not self.compared:
            return self._hebb_alone()
        wanted = self.settings.members
        dense = not sparse.issparse(self.Z) and min(self.Z.shape) <= _WIDEST_TIED
        tried: list[_Tried | None] = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            if "hebb" in wanted:
                hebb = HebbClassifier(n_jobs=self.settings.n_jobs)
                tried.append(self._try("hebb", hebb, lambda _: hebb))
            if "lda" in wanted and dense:
                # centres held back by a prior would leave the threshold to the class frequencies
                lda = self._soft(contamination=0.0, label_noise=0.0, covariance="tied", center_variance=_FLAT)
                tried.append(self._try("lda", lda, lambda _: lda))
            form = "spherical" if self.looks_spherical() else "auto"
            if "soft" in wanted:
                soft = self._try(
                    "soft",
                    self._soft(contamination=self.settings.contamination, covariance=form),
                    self._again,
                )
                tried.append(soft)
                if soft is not None and soft.member.selector is not None:
                    form = soft.member.selector.covariance_structure_
            if "bayes" in wanted:
                bayes = self._bayes(covariance=form, contamination=self.settings.contamination)
                tried.append(self._try("bayes", bayes, self._again))
        tried += self._logistic()
        found = [t for t in tried if t is not None]
        return found or self._hebb_alone()

    def _hebb_alone(self) -> list[_Tried]:
        hebb = HebbClassifier(n_jobs=self.settings.n_jobs)
        found = self._selection("hebb", hebb, (lambda _: hebb) if self.compared else None)
        if found is None:
            raise DataError("no member could be fitted to these data")
        return [found]

    def _soft(self, **settings: Any) -> SoftSelectionClassifier:
        s = self.settings
        common = {"max_iter": s.max_iter, "tol": s.tol, "random_state": self.seed, "n_jobs": s.n_jobs}
        return SoftSelectionClassifier(**(common | settings))

    def _bayes(self, **settings: Any) -> BayesSelectionClassifier:
        s = self.settings
        common = {"max_iter": s.max_iter, "tol": s.tol, "random_state": self.seed, "n_jobs": s.n_jobs}
        return BayesSelectionClassifier(**(common | {"algorithm": "amp"} | settings))

    def _again(self, fitted: SelectionClassifier) -> SelectionClassifier:
        """The same hypothesis for a fit to a part: what the whole settled is not chosen anew."""
        brief = {
            "contamination": min(fitted.contamination_, 0.999),
            "covariance": fitted.covariance_structure_,
            "tol": 1e-3,
            "max_iter": 100,
        }
        if isinstance(fitted, BayesSelectionClassifier):
            return self._bayes(**brief)
        cloud = "shared" if fitted.model_.mixture.shared else "learned"
        return self._soft(**brief, label_noise=fitted.label_noise_, garbage_covariance=cloud)

    def _try(
        self,
        name: str,
        learner: SelectionClassifier,
        again: Callable[[SelectionClassifier], SelectionClassifier],
    ) -> _Tried | None:
        try:
            return self._selection(name, learner, again)
        except (DataError, np.linalg.LinAlgError, FloatingPointError):
            return None

    def _selection(
        self,
        name: str,
        learner: SelectionClassifier,
        again: Callable[[SelectionClassifier], SelectionClassifier] | None,
    ) -> _Tried | None:
        """A member of the generative kind."""
        learner.fit(self.Z, self.labels, self.weights)
        if learner.status_ is FitStatus.ALL_REJECTED or not np.isfinite(learner.coef_).all():
            return None
        coef, intercept = _centred(learner.coef_, learner.intercept_)
        wrong = f", wrong labels {learner.label_noise_:.2f}" if learner.label_noise_ > 0.0 else ""
        member = Member(
            name=name,
            coef=coef,
            intercept=intercept,
            contamination=learner.contamination_,
            detail=f"{learner.covariance_structure_} noise{wrong}",
            n_iter=learner.n_iter_,
            selector=learner,
        )
        held = np.zeros((len(self.shown), len(coef)))
        own = np.full(len(self.shown), -np.log(self.n_classes))
        if again is None:
            return _Tried(member=member, held_out=held)
        brief = again(learner)
        for f in range(int(self.fold.max()) + 1):
            rest, out = self.shown[self.fold != f], self.shown[self.fold == f]
            if len(np.unique(self.labels[rest])) < self.n_classes:
                continue
            part, unseen = self.Z[rest], self.Z[out]
            varies = _varies(part)
            part, unseen = part[:, varies], unseen[:, varies]
            fitted = clone(brief).fit(part, self.labels[rest], self.weights[rest])
            c, b = _centred(fitted.coef_, fitted.intercept_)
            scores = np.asarray(unseen @ c.T, dtype=np.float64) + b
            if not np.isfinite(scores).all():
                return None
            held[self.fold == f] = scores
            # labels as observed, those of outliers too, which the mixture has as frequent as all labels
            proba = fitted.model_.label_proba(unseen, coin=fitted.model_.mixture.garbage_labels)
            proba = proba[np.arange(len(out)), self.labels[out]]
            own[self.fold == f] = np.log(np.maximum(proba, 1e-300))
        return _Tried(member=member, held_out=held, own=own)

    def _logistic(self) -> list[_Tried]:
        given = self.settings.contamination
        tried = []
        for name, shares in (("logistic", (0.0,)), ("robust logistic", SHARES[1:])):
            if name not in self.settings.members:
                continue
            if name == "robust logistic" and given != "auto":
                if given == 0.0:
                    continue
                shares = (float(given),)
            tuned = tuned_robust_logistic(
                self.Z[self.shown],
                self.labels[self.shown],
                self.n_classes,
                self.fold,
                sample_weight=self.weights[self.shown],
                shares=shares,
            )
            fit: RobustLogistic = tuned.fit
            coef, intercept = _centred(fit.coef, fit.intercept)
            held = tuned.held_out
            if self.n_classes > 2:
                held = held - held.mean(axis=1, keepdims=True)
            member = Member(
                name=name,
                coef=coef,
                intercept=intercept,
                contamination=fit.contamination,
                detail=f"penalty {fit.penalty:.3g}, coins {fit.contamination:.2f}",
                n_iter=max(fit.n_iter, 1),
                selector=None,
            )
            tried.append(_Tried(member=member, held_out=held))
        return tried


def _centred(coef: Array, intercept: Array) -> tuple[Array, Array]:
    """Scores of several classes count up to a common term: take it out."""
    if len(coef) == 1:
        return np.asarray(coef), np.asarray(intercept)
    return coef - coef.mean(axis=0), intercept - intercept.mean()


def _slope(x: Array, y: Array) -> float:
    """Slope of y over x, never negative."""
    x = x - x.mean()
    return max(0.0, float(x @ y) / max(float(x @ x), 1e-300))


def _varies(Z: Any) -> NDArray[np.bool_]:
    if sparse.issparse(Z):
        return np.asarray(Z.max(axis=0).toarray() > Z.min(axis=0).toarray()).ravel()
    return np.asarray(Z.max(axis=0) > Z.min(axis=0))
