"""One copy of the job: it estimates pi from points at random, other ones for each seed."""

import argparse
import json
import os
import random
from pathlib import Path

POINTS = 500_000


def main():
    """Print the estimate, and leave it in a file that comes home."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, required=True)
    seed = parser.parse_args().seed
    chance = random.Random(seed)
    inside = sum(chance.random() ** 2 + chance.random() ** 2 <= 1 for _ in range(POINTS))
    estimate = 4 * inside / POINTS
    print(f"copy {os.environ['AXON_INDEX']} of {os.environ['AXON_COPIES']}: pi is about {estimate}")
    Path(os.environ["AXON_OUT"], "pi.json").write_text(json.dumps({"seed": seed, "pi": estimate}))


if __name__ == "__main__":
    main()
