"""For those who work on diskbook itself: benchmarks, fuzzing, faults, coverage, as `make` calls them."""
