"""`axon-tracker`: one of several trackers. It keeps rows, signs tokens, stores receipts."""
