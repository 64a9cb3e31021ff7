"""Calls of scikit-learn with `n_jobs`: those that peers make unchanged, and those whose results cannot travel.

Each takes `n_jobs`, and is tiny. Those that work give numbers, which have to be those of `n_jobs=1`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification, make_regression
from sklearn.ensemble import BaggingClassifier, RandomForestClassifier, StackingClassifier, VotingClassifier
from sklearn.feature_selection import RFECV
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LassoCV, LogisticRegression, LogisticRegressionCV, Ridge
from sklearn.model_selection import (
    GridSearchCV,
    RandomizedSearchCV,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    learning_curve,
    permutation_test_score,
    validation_curve,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import FeatureUnion
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

X, Y = make_classification(300, 8, n_informative=5, n_classes=3, random_state=0)
"""More than 16 KB: it leaves the pickle."""
X_OF_NUMBERS, NUMBERS = make_regression(120, 6, noise=4.0, random_state=0)
TREE = DecisionTreeClassifier(max_depth=3, random_state=0)
DEPTHS = [1, 2, 3]


def _searched(search: Any) -> Any:
    search.fit(X, Y)
    scores = {name: values for name, values in search.cv_results_.items() if "time" not in name and name != "params"}
    return [scores, search.best_score_, search.best_params_]


def _validated(n_jobs: int) -> Any:
    found = cross_validate(TREE, X, Y, n_jobs=n_jobs, return_train_score=True)
    return {name: values for name, values in found.items() if "time" not in name}


def _eliminated(n_jobs: int) -> Any:
    found = RFECV(TREE, n_jobs=n_jobs, cv=3).fit(X, Y)
    return [found.support_, found.cv_results_["mean_test_score"]]


def _logistic(n_jobs: int) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        found = LogisticRegressionCV(Cs=3, cv=3, max_iter=200, n_jobs=n_jobs).fit(X, Y)
    return [found.coef_, found.C_]


def _lasso(n_jobs: int) -> Any:
    found = LassoCV(cv=3, n_jobs=n_jobs, random_state=0).fit(X_OF_NUMBERS, NUMBERS)
    return [found.coef_, found.alpha_, found.mse_path_]


WORKING: dict[str, Callable[[int], Any]] = {
    "GridSearchCV": lambda n: _searched(GridSearchCV(TREE, {"max_depth": DEPTHS}, n_jobs=n)),
    "RandomizedSearchCV": lambda n: _searched(
        RandomizedSearchCV(TREE, {"max_depth": DEPTHS}, n_iter=2, random_state=0, n_jobs=n)
    ),
    "cross_validate": _validated,
    "cross_val_score": lambda n: cross_val_score(TREE, X, Y, n_jobs=n),
    "cross_val_predict": lambda n: cross_val_predict(TREE, X, Y, n_jobs=n, method="predict_proba"),
    "learning_curve": lambda n: learning_curve(TREE, X, Y, n_jobs=n)[:3],
    "validation_curve": lambda n: validation_curve(TREE, X, Y, param_name="max_depth", param_range=DEPTHS, n_jobs=n),
    "permutation_test_score": lambda n: permutation_test_score(
        TREE, X, Y, n_permutations=6, cv=3, random_state=0, n_jobs=n
    ),
    "permutation_importance": lambda n: permutation_importance(
        DecisionTreeClassifier(random_state=0).fit(X, Y), X, Y, n_repeats=2, random_state=0, n_jobs=n
    )["importances"],
    "RFECV": _eliminated,
    "LogisticRegressionCV": _logistic,
    "LassoCV": _lasso,
}
"""The same numbers come back as from `n_jobs=1`."""

REFUSED: dict[str, Callable[[int], Any]] = {
    "RandomForestClassifier": lambda n: RandomForestClassifier(4, n_jobs=n).fit(X, Y),
    "BaggingClassifier": lambda n: BaggingClassifier(TREE, 4, n_jobs=n).fit(X, Y),
    "VotingClassifier": lambda n: VotingClassifier([("a", TREE), ("b", LogisticRegression())], n_jobs=n).fit(X, Y),
    "StackingClassifier": lambda n: StackingClassifier([("a", TREE), ("b", TREE)], n_jobs=n).fit(X, Y),
    "OneVsRestClassifier": lambda n: OneVsRestClassifier(LogisticRegression(), n_jobs=n).fit(X, Y),
    "MultiOutputRegressor": lambda n: MultiOutputRegressor(Ridge(), n_jobs=n).fit(
        X_OF_NUMBERS, np.stack([NUMBERS, NUMBERS], axis=1)
    ),
    "FeatureUnion": lambda n: FeatureUnion([("a", StandardScaler()), ("b", StandardScaler())], n_jobs=n).fit(X),
    "CalibratedClassifierCV": lambda n: CalibratedClassifierCV(TREE, cv=2, n_jobs=n).fit(X, Y),
}
"""Estimators that are fitted by peers would have to come back."""


def same(one: Any, other: Any) -> bool:
    """Whether two results are equal, down to the last bit of each number."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, np.ma.MaskedArray):
        return np.ma.allequal(one, other)
    return np.array_equal(np.asarray(one), np.asarray(other))
