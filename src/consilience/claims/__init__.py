"""Claims: read from any kind of table, checked, encoded once into flat integer arrays.

Nothing is imported here, so that an engine can use `consilience.claims.encoding` with NumPy alone.
"""
