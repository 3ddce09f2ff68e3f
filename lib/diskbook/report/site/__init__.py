"""`diskbook site`: all runs of a folder as pages that link each other, opened from disk, asked of nobody."""
