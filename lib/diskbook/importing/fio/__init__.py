"""Files of fio that a run of our own never has: text for people, terse output, logs of any version."""
