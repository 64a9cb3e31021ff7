"""CONTAIN: a stranger's code behind a wall.

`limits`, `log`, `walls.command_line`, `watch.verdict` and `walls.diagnosis` decide: what a worker may use, what is kept
of its output, the bubblewrap command for it, which limit it went over, and what mends a machine where bubblewrap fails.
`environment` finds Python on this machine, `launch` starts the sandbox, `watch.watcher` sums up its processes ten times
a second, `child` is the whole of it for the daemon. `freezer` makes a worker stand still, `priority` keeps it behind
everything else, and `worker_group` puts it into a control group where the kernel gives one (`cgroup` decides which);
`ending` names its end.
`channel` outside and `inside` within are the ends of the one socket between them.
Without bubblewrap there is no worker.
"""
