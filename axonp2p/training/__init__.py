"""COMPUTE together: rounds of local steps, then an exchange of weight differences (DiLoCo, arXiv 2311.08105).

`plan` and `round` decide (pure, no torch): which shards, which seeds, when a round is accepted, redone or given up.
`coordinator` carries it out at the client. `worker_main` runs in the sandbox of each peer, with `task` (the user's
code), `local_trainer` (local steps), `exchange` (slices over the mesh) and `outer_optimizer`.
"""
