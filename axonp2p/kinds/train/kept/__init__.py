"""The kept files of a training on the client's disk: the best round, the files of weights, the end without peers."""
