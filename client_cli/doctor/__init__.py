"""`axon doctor`: `facts` looks, `checks` and `split` judge, `report` says it."""
