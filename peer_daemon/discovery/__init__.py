"""Finding the network: trackers, DHT, the local network, relays, and this machine's place in it."""
