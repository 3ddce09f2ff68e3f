"""Text that DiskSpd prints for people; a run of our own asks for XML."""
