"""scikit-learn's grid search on peers: python search.py

The only lines about Axon are `import axonp2p.joblib` and the `with` of `parallel_config`. A call fits a support vector
machine with one pair of parameters on four fifths of the digits, and scores it on the rest.
"""

import argparse
import pathlib

import numpy
from joblib import parallel_config
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

DIGITS = pathlib.Path(__file__).parent.parent / "digits" / "digits.csv.gz"
GRID = {"C": [0.1, 1, 10, 100], "gamma": [0.0001, 0.001, 0.01]}


def main():
    import axonp2p.joblib  # noqa: F401  from here on joblib knows "axon"

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tracker", action="append", default=[], help="as axon-tracker run prints it")
    parser.add_argument("--peers", type=int, default=4)
    parser.add_argument("--install", action="store_true", help="send scikit-learn to the peers, which lack it")
    told = parser.parse_args()
    table = numpy.loadtxt(DIGITS, delimiter=",")
    images, digits = table[:, :64], table[:, 64].astype(int)
    more = {"packages": {"install": ["scikit-learn"]}} if told.install else {}
    need = {"memory": "800 MB"}
    search = GridSearchCV(SVC(), GRID, cv=5, n_jobs=-1)
    with parallel_config("axon", peers=told.peers, trackers=told.tracker, name="grid-search", need=need, **more):
        search.fit(images, digits)
    for parameters, score in zip(search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True):
        print(f"{score:.4f}  {parameters}")
    print(f"best: {search.best_params_} with {search.best_score_:.4f}")


if __name__ == "__main__":
    main()
