"""Volumes, fleets and losses in a scenario: what they need, where copies lie, what they outlive. Pure."""
