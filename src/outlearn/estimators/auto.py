"""The classifier to begin with: several learners are tried, held-out labels decide, ties are pooled."""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.metaestimators import available_if

from outlearn.estimators.base import SelectionClassifier
from outlearn.estimators.members import MEMBERS, MemberScore, MemberTable, Tried
from outlearn.estimators.threads import within_jobs
from outlearn.estimators.trial import Trial
from outlearn.estimators.units import Units
from outlearn.estimators.verdict import Verdict, weigh
from outlearn.exceptions import DataError, ParameterError
from outlearn.inference.pooling import Calibration, calibrate
from outlearn.inference.results import FitStatus
from outlearn.inference.robust_logistic import label_loss

__all__ = ["AutoSelectionClassifier"]

Array = NDArray[np.float64]
Labels = NDArray[np.intp]


class AutoSelectionClassifier(SelectionClassifier):
    """Learn a linear rule from contaminated labels, whatever the contamination: the default choice.

    Members are tried side by side: Hebb's rule, linear discriminant analysis, soft selection, the
    Bayes-optimal classifier, and logistic regression without and with garbage in its labels. They are
    compared by how well they foretell held-out labels, as observed; clean labels are never needed. Their
    rules are pooled with weights averaged over halves of the held-out labels, so that chance does not choose
    one. Where the features look like the model's (independent, of one variance) the Bayes-optimal rule is
    used alone, unless another is clearly better on held-out labels. Where these say next to nothing (little
    data, mostly garbage) on other features, the rules that learn least from them are trusted: Hebb's and
    discriminant analysis. With more features than examples, and these correlated, soft selection and the
    Bayes-optimal classifier do not take part: any labels can be fitted there, and what looks like garbage
    is the fit's own overconfidence.

    Parameters
    ----------
    members : tuple of str
        Which to try, of "hebb", "lda", "soft", "bayes", "logistic", "robust logistic".
    contamination : float or "auto"
        Fraction of outliers, if known.
    pool : bool
        Pool the members by their weights; otherwise the best alone decides.
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
        members: tuple[str, ...] = MEMBERS,
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

    @within_jobs
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
        trial = Trial.of(self, X, self.units_.inward(X), labels, weights)
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

    def _choose(self, trial: Trial, tried: list[Tried]) -> None:
        """Weigh the members by held-out labels, and pool their rules into one."""
        labels, weights = trial.labels[trial.shown], trial.weights[trial.shown]
        self.pool_ = tuple(t.member for t in tried)
        if trial.compared:
            self.calibrations_ = tuple(calibrate(t.held_out, labels, weights) for t in tried)
            verdict = weigh(trial, tried, self.calibrations_, self.pool)
            gains = verdict.weights * verdict.units
            parts = zip(gains, tried, verdict.shifts, strict=True)
            pooled = np.asarray(sum(g * (t.held_out + s) for g, t, s in parts))
            final = calibrate(pooled, labels, weights, shift=False)
            scale, self.label_contamination_ = final.slope, final.contamination
        else:
            unknown = np.full(len(labels), np.nan)
            fair = np.full(trial.n_classes, 1.0 / trial.n_classes)
            still = np.zeros(tried[0].held_out.shape[1])
            self.calibrations_ = (
                Calibration(slope=1.0, offset=still, contamination=0.0, coin=fair, log_proba=unknown),
            )
            one = np.ones(1)
            reason = "a class has too few examples to compare members"
            verdict = Verdict(
                weights=one,
                units=one,
                shifts=np.zeros(1),
                held_out=one * np.nan,
                behind=one * 0.0,
                reason=reason,
            )
            gains, scale, self.label_contamination_ = one, 1.0, 0.0
        coef = sum(g * t.member.coef for g, t in zip(gains, tried, strict=True))
        parts = zip(gains, tried, verdict.shifts, strict=True)
        shift = sum(g * (t.member.intercept + s) for g, t, s in parts)
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

    def _judge_training_set(self, trial: Trial, tried: list[Tried]) -> Array:
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
        known = isinstance(self.members, tuple | list) and all(m in MEMBERS for m in self.members)
        if not known or not self.members:
            raise ParameterError("members", self.members, f"one or more of {', '.join(MEMBERS)}")
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

    @within_jobs
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

    @within_jobs
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


def _informative(c: Calibration, scores: Array, labels: Labels, count: float) -> Array:
    """Probability that a label is no coin; a pinch of coins, so that clean data are ranked by doubt too."""
    e = max(c.contamination, 1.0 / (count + 2.0))
    loss = label_loss(c.slope * scores + c.offset, labels, e, c.coin)[0]
    return np.asarray(np.clip(1.0 - e * c.coin[labels] * np.exp(loss), 0.0, 1.0))
