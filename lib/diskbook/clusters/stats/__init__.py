"""What volumes may do by their limits, and the numbers of fleets, nodes and wires. Pure."""
