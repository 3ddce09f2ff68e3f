"""Damaged results for every parser."""
