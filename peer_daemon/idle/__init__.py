"""STAY OUT OF THE WAY: when this machine may work for others, and the one true sentence that says why not.

`policy` decides from `Readings` (what was seen of the machine) and `idle_settings` (its owner's limits;
`read_idle_settings` makes them of config.toml); `reasons` words what is in the way, `decision` judges other programs,
`hours` the week. `sensors` joins the files that read: `programs`, `power`, `network`, `terminals`, and `desktop` over a
`bus`.
"""
