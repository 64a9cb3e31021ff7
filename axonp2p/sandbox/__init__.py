"""CONTAIN: a stranger's code behind a wall.

`limits`, `command_line`, `verdict`, `log` and `diagnosis` decide: what a worker may use, the bubblewrap command for it,
which limit it went over, what is kept of its output, and what mends a machine where bubblewrap fails. `environment`
finds Python on this machine, `launch` starts the sandbox, `watch` sums up its processes ten times a second, `child`
is the whole of it for the daemon. `freezer` makes a worker stand still, `priority` keeps it behind everything else, and
`worker_group` puts it into a control group where the kernel gives one (`cgroup` decides which); `ending` names its end.
`channel` outside and `inside` within are the ends of the one socket between them.
Without bubblewrap there is no worker.
"""
