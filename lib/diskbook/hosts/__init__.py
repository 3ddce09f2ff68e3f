"""Machines over SSH: Azure's, emulated ones and hosts of your own."""
