"""How much does the seed matter? A small network reads digits, from other first weights in each copy."""

import argparse
import gzip
import json
import os
from pathlib import Path

import numpy

HELD_OUT = 360
"""Images that nobody trains on: the same ones for all seeds."""
STEPS, BATCH, RATE, HIDDEN = 600, 32, 0.2, 64


def images():
    """All images with their digits, mixed in the same way for all seeds."""
    with gzip.open(Path(__file__).parent / "digits.csv.gz", "rt") as file:
        table = numpy.loadtxt(file, delimiter=",", dtype=numpy.float32)
    numpy.random.default_rng(0).shuffle(table)
    return table[:, :64] / 16, table[:, 64].astype(int)


def train(pixels, digits, chance):
    """Weights of one hidden layer, by gradient descent on the cross entropy."""
    first = chance.normal(0, 64**-0.5, (64, HIDDEN))
    second = chance.normal(0, HIDDEN**-0.5, (HIDDEN, 10))
    for _ in range(STEPS):
        rows = chance.integers(len(pixels), size=BATCH)
        hidden = numpy.maximum(pixels[rows] @ first, 0)
        wrong = likelihoods(hidden @ second)
        wrong[range(BATCH), digits[rows]] -= 1
        back = wrong @ second.T * (hidden > 0)
        second -= RATE / BATCH * hidden.T @ wrong
        first -= RATE / BATCH * pixels[rows].T @ back
    return first, second


def likelihoods(scores):
    """How likely each digit is."""
    powers = numpy.exp(scores - scores.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def main():
    """Train with one seed, and write how many held-out images are read rightly."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, required=True)
    seed = parser.parse_args().seed
    pixels, digits = images()
    first, second = train(pixels[HELD_OUT:], digits[HELD_OUT:], numpy.random.default_rng(seed))
    answers = (numpy.maximum(pixels[:HELD_OUT] @ first, 0) @ second).argmax(axis=1)
    accuracy = float((answers == digits[:HELD_OUT]).mean())
    print(f"seed {seed}: {accuracy:.1%} of the held-out images")
    Path(os.environ["AXON_OUT"], "score.json").write_text(json.dumps({"seed": seed, "accuracy": accuracy}))


if __name__ == "__main__":
    main()
