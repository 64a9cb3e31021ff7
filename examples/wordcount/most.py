"""The most frequent words of Python's library: python most.py, with a swarm at hand. It submits this folder's job."""

import argparse
import pathlib

import axonp2p

HERE = pathlib.Path(__file__).parent


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tracker", action="append", default=[], help="as axon-tracker run prints it")
    parser.add_argument("--peers", type=int, default=4)
    parser.add_argument("--words", type=int, default=20)
    told = parser.parse_args()
    with axonp2p.Swarm(trackers=told.tracker) as swarm:
        job = swarm.submit(HERE, peers=told.peers)
        print("page", job.page, flush=True)
        job.wait()
        counts = job.fetch()
    for word in sorted(counts, key=counts.get, reverse=True)[: told.words]:
        print(f"{counts[word]:8,}  {word}")


if __name__ == "__main__":
    main()
