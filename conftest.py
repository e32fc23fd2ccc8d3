"""Set before anything imports SciPy: scikit-learn's checks then leave none out."""

import os

os.environ.setdefault("SCIPY_ARRAY_API", "1")
