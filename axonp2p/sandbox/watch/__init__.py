"""The resources of a job, looked at ten times a second: control groups, priorities, freezing, and its end."""
