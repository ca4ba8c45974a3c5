"""How one shard is computed. `numpy_` is the reference, readable first; the others give the same numbers faster."""
