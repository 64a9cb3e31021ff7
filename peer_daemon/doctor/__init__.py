"""`axon-peer doctor`: `probe` looks and tries the wall, `facts` is what it found, `checks` judges."""
