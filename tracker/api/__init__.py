"""The doors of a tracker: HTTP routes, the line between trackers, metrics, and the status page."""
