"""The emulator as a cloud of diskbook: how a run, the doctor, the sweep and the command line use it."""
