"""The catalogue: what thousands of runs measured, as Parquet that a run joins with its own files."""
