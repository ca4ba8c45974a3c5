"""How good answers are, and which model is best."""
