"""Clusters of Windows nodes: scenarios on volumes, their steps, loads, costs and analyses."""
