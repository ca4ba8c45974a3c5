"""What was found, for people to look at."""
