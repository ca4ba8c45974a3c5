"""What a model found: tables, explanations, scores, and how they are kept on disk."""
