"""Whether others can call this machine: calls back, ports opened at the router, relaying for others."""
