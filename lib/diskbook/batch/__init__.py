"""`diskbook batch`: a matrix of scenarios and settings made into runs, priced, run and summed up."""
