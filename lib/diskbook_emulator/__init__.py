"""The server side: a miniature Azure on loopback, with machines and disks."""
