"""Azurite, Microsoft's server of Azure storage for tests, and a proxy with faults in front of it."""
