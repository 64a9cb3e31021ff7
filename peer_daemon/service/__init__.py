"""At login, in the background: texts for systemd, launchd and the Task Scheduler, and putting them in place."""
