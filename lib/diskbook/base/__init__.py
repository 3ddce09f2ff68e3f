"""What everything stands on and knows no disk: errors, paths, redaction, units, files."""
