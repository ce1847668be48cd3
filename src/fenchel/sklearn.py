"""Linear classifiers for label sets and label proportions, in the form of scikit-learn.

The classifiers of Martins & Astudillo (2016), section 4, and 1.5-entmax between them. Each minimizes
½‖W‖² + C Σ L(W x + b; q) with another loss; those with "CV" also choose C by cross-validation.
"""

from fenchel.extras import require

require("sklearn", extra="train")

from fenchel.linear.estimators import (  # noqa: E402
    EntmaxClassifier,
    EntmaxClassifierCV,
    LogisticClassifier,
    LogisticClassifierCV,
    SoftmaxClassifier,
    SoftmaxClassifierCV,
    SparsemaxClassifier,
    SparsemaxClassifierCV,
)

__all__ = [
    "EntmaxClassifier",
    "EntmaxClassifierCV",
    "LogisticClassifier",
    "LogisticClassifierCV",
    "SoftmaxClassifier",
    "SoftmaxClassifierCV",
    "SparsemaxClassifier",
    "SparsemaxClassifierCV",
]
