"""The table of a sweep: `python table.py FOLDER`, where FOLDER is what `axon fetch JOB -o FOLDER` made."""

import json
import statistics
import sys
from pathlib import Path

scores = [json.loads(path.read_text()) for path in Path(sys.argv[1], "out").glob("*/score.json")]
for score in sorted(scores, key=lambda score: score["seed"]):
    print(f"{score['seed']:4}  {score['accuracy']:.1%}")
accuracies = [score["accuracy"] for score in scores]
print(f"mean  {statistics.mean(accuracies):.1%}, from {min(accuracies):.1%} to {max(accuracies):.1%}")
