"""Runs in object storage: addresses, whole copies, who works on a run, and whether all of it is as it was."""
