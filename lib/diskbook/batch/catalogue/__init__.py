"""The catalogue: what thousands of runs measured, as Parquet that a run joins by files of its own."""
