"""scikit-learn estimators over the algorithms of ``inference``."""
