"""Real data, contaminated on purpose: our classifiers beside what people use today.

``sets`` fetches and reads, ``contamination`` spoils a training set in one of four ways, ``methods`` holds the
classifiers, ``cells`` runs them (one result per set, kind, rate, seed and method, kept for the next run), and
``tables`` prints and writes what came out.
"""
