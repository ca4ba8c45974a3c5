"""Data sets: made to order (`synthetic`, `capitals`, `tagging`), and public ones (`catalogue`, `fetch`)."""
