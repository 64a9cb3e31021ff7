"""STAY OUT OF THE WAY: when this machine may work for others, and the one true sentence that says why not.

`policy` decides from `readings` (what was seen of the machine) and `wishes` (what its owner wants); the sensors read.
"""
