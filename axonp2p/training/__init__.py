"""COMPUTE together: rounds of local steps, then an exchange of weight differences (DiLoCo, arXiv 2311.08105).

`plan` and `rounds` decide (pure, no torch): which shards, which seeds, when a round is accepted, redone or given up.
`coordinator` carries it out at the client. `worker` runs in the sandbox of each peer, with `trainer` (the user's code,
local steps, the outer step) and `exchange` (slices over the mesh). `spot_checks` and `verification` look at the work.
"""
