"""`diskbook post`: a run as Markdown that a writer would send to an editor, with two figures next to it."""
