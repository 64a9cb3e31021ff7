"""Whether results are believed: what several peers found of one item, which of it counts, and who was wrong."""
