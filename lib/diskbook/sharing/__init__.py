"""`diskbook share`, and `diskbook import` of its files: runs that strangers can read, check and pool."""
