"""Measuring one replicate: trials, checks, reservations, failover tests."""
