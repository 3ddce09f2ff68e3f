"""`diskbook batch`: a matrix of scenarios and settings made into runs, priced, run and summed up.

Runs in object storage are in `stores`, the index of many runs in `catalogue`.
"""
