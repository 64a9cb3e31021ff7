"""`kind = "train"`: peers train one model together. The client's half; the machinery is in `axonp2p.training`."""
