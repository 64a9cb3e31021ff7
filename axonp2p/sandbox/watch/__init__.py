"""What a job uses, looked at ten times a second: control groups, priorities, freezing, and its end."""
