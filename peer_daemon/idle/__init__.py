"""STAY OUT OF THE WAY: when this machine may work for others, and the one true sentence that says why not.

`policy` decides from `readings` (what was seen of the machine) and `wanted` (what its owner wants; `wishes` makes
it of the settings); `reasons` words what is in the way, `busy` judges other programs, `hours` the week. `sensors` joins
the files that read: `cpu`, `programs`, `power`, `network`, `terminals`, and `desktop` over a `bus`.
"""
