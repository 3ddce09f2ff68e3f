"""From a manifest to clients: the cloud of a run, and its own emulator."""
