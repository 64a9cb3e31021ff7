"""`axon-peer doctor`: `look` looks and tries the wall, `facts` is what it found, `checks` judges."""
