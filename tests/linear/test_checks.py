"""The classifiers obey the conventions of scikit-learn."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from fenchel.sklearn import (
    EntmaxClassifier,
    EntmaxClassifierCV,
    LogisticClassifier,
    LogisticClassifierCV,
    SoftmaxClassifier,
    SoftmaxClassifierCV,
    SparsemaxClassifier,
    SparsemaxClassifierCV,
)

CLASSIFIERS = [
    SoftmaxClassifier(),
    LogisticClassifier(),
    SparsemaxClassifier(),
    EntmaxClassifier(),
    SoftmaxClassifierCV(Cs=[0.1, 1.0]),
    LogisticClassifierCV(Cs=[0.1, 1.0]),
    SparsemaxClassifierCV(Cs=[0.1, 1.0]),
    EntmaxClassifierCV(Cs=[0.1, 1.0], alphas=[1.5, 2.0]),
]


def expected_failures(estimator) -> dict[str, str]:
    """Proportions can be exactly 0 and 1, which is what the sparse losses are for."""
    if not hasattr(estimator, "inverse_temperature"):
        return {}
    check = "check_classifiers_multilabel_output_format_predict_proba"
    return {check: "proportions can be exactly 0, the check requires them to be positive"}


# Some of the data of the checks has examples without a label.
@pytest.mark.filterwarnings("ignore:examples without a label are left out:UserWarning")
@parametrize_with_checks(CLASSIFIERS, expected_failed_checks=expected_failures)
def test_scikit_learn_checks_pass(estimator, check):
    check(estimator)
