"""The task on this computer, without a swarm: tried before it is sent, in one plain process, its model exported."""
