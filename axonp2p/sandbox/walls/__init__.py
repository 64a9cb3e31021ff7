"""The walls around a job: mounts, namespaces, Landlock, the filter of system calls, its user and its limits."""
