"""Tools that measure, and the results of tools: commands, parsers, one record."""
