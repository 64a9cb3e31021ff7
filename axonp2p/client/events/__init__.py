"""What happens to a job, as its author is told: one tagged struct for each kind of news."""
