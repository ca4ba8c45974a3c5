"""Where shards live and how their statistics are summed."""
