"""Ratios of trials with their intervals, gates and verdicts. Pure."""
