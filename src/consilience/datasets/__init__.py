"""Data sets: made to order (`synthetic`, `capitals`), and public ones (`catalogue`, `fetch`)."""
