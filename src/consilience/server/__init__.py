"""The explorer: a saved result as pages and as JSON, on this machine, with a queue of truths to check."""
