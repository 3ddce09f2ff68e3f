"""`diskbook share`, `record` and `pool`: runs and recordings that strangers can read, check and pool."""
