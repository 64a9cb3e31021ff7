"""The three questions of `axon-peer setup`: `answers` understands and writes them, `probe` finds out."""
