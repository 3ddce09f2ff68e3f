"""A run's folder and its tables."""
