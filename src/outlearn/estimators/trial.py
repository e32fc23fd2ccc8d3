"""The trial of the members: the data dealt out, every member fitted to all and to parts."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from outlearn.estimators.base import SelectionClassifier
from outlearn.estimators.bayes import BayesSelectionClassifier
from outlearn.estimators.hebb import HebbClassifier
from outlearn.estimators.members import Member, Tried
from outlearn.estimators.soft import SoftSelectionClassifier
from outlearn.exceptions import DataError
from outlearn.inference.discriminant import discriminant
from outlearn.inference.folds import content_order, folds
from outlearn.inference.pooling import looks_spherical
from outlearn.inference.results import FitStatus
from outlearn.inference.robust_logistic import SHARES, RobustLogistic, tuned_robust_logistic

if TYPE_CHECKING:
    from outlearn.estimators.auto import AutoSelectionClassifier

__all__ = ["Trial"]

Array = NDArray[np.float64]
Labels = NDArray[np.intp]

_MAX_CELLS = 1_000_000  # numbers looked at while members are compared; the final fits see everything
_SELECTING = ("soft", "bayes")
_WIDEST = 3000  # smaller side of the data beyond which their covariance takes too long


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trial:
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
    def of(cls, settings: AutoSelectionClassifier, X: Any, Z: Any, labels: Labels, weights: Array) -> Trial:
        """Deal data in standard units out, equal examples together, whatever their order."""
        k = len(settings.classes_)
        groups, order = content_order(X, labels)
        shown = np.sort(order[: max(_MAX_CELLS // X.shape[1], 50 * k)])
        fewest = min(len(np.unique(groups[shown][labels[shown] == c])) for c in range(k))
        n_folds = min(settings.n_folds, fewest)
        fold = np.zeros(len(shown), dtype=np.intp)
        if n_folds > 1:
            fold = folds(X[shown], labels[shown], n_folds)
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

    def run(self) -> list[Tried]:
        """Fit the members that suit the data to all and to parts; members that fail are left out."""
        if not self.compared:
            return self._hebb_alone()
        wanted = self.settings.members
        tried: list[Tried | None] = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            if "hebb" in wanted:
                hebb = HebbClassifier(n_jobs=self.settings.n_jobs)
                tried.append(self._try("hebb", hebb, lambda _: hebb))
            if "lda" in wanted:
                tried.append(self._discriminant())
            spherical = self.looks_spherical()
            form = "spherical" if spherical else "auto"
            if not spherical and self.Z.shape[0] <= self.Z.shape[1] and len(wanted) > 1:
                # any labels can be fitted: what would look like garbage is the fit's own overconfidence
                wanted = tuple(name for name in wanted if name not in _SELECTING) or wanted
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

    def _hebb_alone(self) -> list[Tried]:
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
    ) -> Tried | None:
        try:
            return self._selection(name, learner, again)
        except (DataError, np.linalg.LinAlgError, FloatingPointError):
            return None

    def _selection(
        self,
        name: str,
        learner: SelectionClassifier,
        again: Callable[[SelectionClassifier], SelectionClassifier] | None,
    ) -> Tried | None:
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
            return Tried(member=member, held_out=held)
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
        return Tried(member=member, held_out=held, own=own)

    def _discriminant(self) -> Tried | None:
        """Discriminant analysis, in closed form."""
        k = self.n_classes
        if sparse.issparse(self.Z) or min(self.Z.shape) > _WIDEST:
            return None
        columns = 1 if k == 2 else k
        held = np.zeros((len(self.shown), columns))
        try:
            whole = discriminant(self.Z, self.labels, k, self.weights)
            for f in range(int(self.fold.max()) + 1):
                rest, out = self.shown[self.fold != f], self.shown[self.fold == f]
                if len(np.unique(self.labels[rest])) == k:
                    part = discriminant(self.Z[rest], self.labels[rest], k, self.weights[rest])
                    c, b = _centred(part.coef, part.intercept)
                    held[self.fold == f] = self.Z[out] @ c.T + b
        except (DataError, np.linalg.LinAlgError):
            return None
        coef, intercept = _centred(whole.coef, whole.intercept)
        member = Member(
            name="lda",
            coef=coef,
            intercept=intercept,
            contamination=0.0,
            detail=f"shrinkage {whole.shrinkage:.2g}",
            n_iter=1,
            selector=None,
        )
        return Tried(member=member, held_out=held)

    def _logistic(self) -> list[Tried]:
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
            tried.append(Tried(member=member, held_out=held))
        return tried


def _centred(coef: Array, intercept: Array) -> tuple[Array, Array]:
    """Scores of several classes count up to a common term: take it out."""
    if len(coef) == 1:
        return np.asarray(coef), np.asarray(intercept)
    return coef - coef.mean(axis=0), intercept - intercept.mean()


def _varies(Z: Any) -> NDArray[np.bool_]:
    if sparse.issparse(Z):
        return np.asarray(Z.max(axis=0).toarray() > Z.min(axis=0).toarray()).ravel()
    return np.asarray(Z.max(axis=0) > Z.min(axis=0))
