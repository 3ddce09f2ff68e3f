"""Ratios with their intervals, gates and verdicts, and which limit holds a cell. Pure."""
