"""Azure's documented facts, and the units, files, paths and errors that all code shares."""
