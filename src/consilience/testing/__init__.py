"""What every model must satisfy, random tables, and slow obvious loops to check fast code against."""
