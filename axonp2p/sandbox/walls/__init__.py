"""What a job cannot pass: mounts, namespaces, Landlock, the filter of system calls, its user and its limits."""
