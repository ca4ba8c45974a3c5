"""Models side by side, and how well one label is found."""
