"""Faults injected into whole runs: real notebooks, emulator, SSH and fio, each run seen to its end.

`python -m checks.faults` plays them all and prints a table. `table.py` lists them; `inject.py` and
`spoil.py` do the harm, at one of the moments of `moments.py`; `scene.py` is the place where one run lives,
`aftermath.py` looks at what is left, and `play.py` puts a row together.
"""
