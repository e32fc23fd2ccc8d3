"""Soft selection: every example counts by the probability that it is informative."""

from __future__ import annotations

from typing import Any

from outlearn.estimators.base import SelectionClassifier

__all__ = ["SoftSelectionClassifier"]


class SoftSelectionClassifier(SelectionClassifier):
    """Learn class centres from data of which a large part is garbage, by EM (Eqs. energy, postv).

    The examples are a mixture: informative ones around the centre of their class, garbage that knows
    nothing of its label, and possibly informative ones with a wrong label. All are fitted together; the
    fractions, the noise and its form are learned from the data where the parameter says "auto".

    Parameters
    ----------
    contamination : float or "auto"
        Fraction of outliers, in [0, 1).
    label_noise : float or "auto"
        Fraction of all examples that are informative but bear a wrong label; 0 leaves them out of the model.
    noise_variance : float or "auto"
        Variance of a feature within a class (the paper's 1/γ), averaged over features.
    center_variance : float or "auto"
        Prior variance of a coordinate of a centre (1/N in the paper).
    covariance : {"auto", "spherical", "diag", "tied"}
        Form of the noise within a class: one variance, one per feature, a full shrunk matrix shared by the
        classes; "auto" chooses by how well held-out labels are foretold.
    garbage_covariance : {"auto", "shared", "learned"}
        Whether the outliers' cloud has the covariance and the middle of the classes, or its own.
    n_init : int
        Number of starting points; the first is Hebb's rule.
    max_iter : int
        Most EM iterations of the final fit, per start.
    tol : float
        Relative move of the centres in one EM step that counts as converged.
    warm_start : bool
        Begin from the previous fit.
    random_state : int, RandomState or None
        For the random starts.
    n_jobs : int or None
        Most threads used to read large data.

    Attributes
    ----------
    centers_ : array (n_classes, n_features)
        Class centres.
    contamination_, label_noise_, noise_variance_, center_variance_ : float
        As given or as learned.
    inlier_proba_ : array (n_samples,)
        Probability that each training example is informative and rightly labelled, its own pull on the
        centres taken out (to first order); zero where ``sample_weight`` is zero.
    coef_, intercept_ : arrays
        The linear rule: of the second class for two classes, of every class for more.
    garbage_center_, garbage_variance_ : array (n_features,) and float
        Middle and mean variance of the outliers' cloud.
    class_prior_ : array (n_classes,)
        Frequencies of the true classes among informative examples.
    covariance_structure_ : str
        The form of the noise that was used.
    energy_ : float
        Minus the log posterior of the parameters, up to constants of the prior.
    n_iter_ : int
    starts_ : tuple of dict
        Outcome of every start.
    selection_ : tuple or None
        What "auto" tried, and how well each foretold held-out labels.
    status_ : FitStatus
        How the fit ended; a degenerate one says so.
    classes_, n_features_in_, feature_names_in_

    Examples
    --------
    >>> from outlearn import Ensemble, sample
    >>> data = sample(Ensemble.from_contamination(0.8, gamma=10.0), 50, 1000, rng=0)
    >>> model = SoftSelectionClassifier(covariance="spherical", label_noise=0).fit(data.X, data.y)
    >>> round(model.contamination_, 1)
    0.8
    >>> bool(model.inlier_proba_[data.informative].mean() > 0.5)
    True
    """

    def __init__(
        self,
        contamination: Any = "auto",
        *,
        label_noise: Any = "auto",
        noise_variance: Any = "auto",
        center_variance: Any = "auto",
        covariance: str = "auto",
        garbage_covariance: str = "auto",
        n_init: int = 1,
        max_iter: int = 1000,
        tol: float = 1e-5,
        warm_start: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.contamination = contamination
        self.label_noise = label_noise
        self.noise_variance = noise_variance
        self.center_variance = center_variance
        self.covariance = covariance
        self.garbage_covariance = garbage_covariance
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
