"""A run's folder and its tables, here or in object storage."""
