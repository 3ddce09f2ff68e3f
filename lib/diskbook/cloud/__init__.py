"""From a manifest to clients: the cloud of a run, and an emulator of its own."""
