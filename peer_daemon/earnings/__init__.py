"""Receipts and what becomes of them: kept, handed in, proved, and compared with the logs of trackers."""
