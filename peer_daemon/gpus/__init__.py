"""GPUs of this machine: seen through their driver, lent as their owner wishes, one to a lease, and looked at meanwhile.

`seen_gpus` and `gpu_lending` decide what is lent and why not; `nvml`, `torch_build` and `other_vendors` look;
`gpu_use` decides when the owner's programs want a card back.
"""
