"""Hosts of the user's own: the file that names them, what may be written there, and its removal."""
