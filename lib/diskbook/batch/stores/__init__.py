"""Runs in object storage and shared folders: `push`, `fetch`, `verify`, and `--store`."""
