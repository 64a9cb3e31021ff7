"""The events of a job, as its author is told: one tagged struct for each kind of news."""
