"""What writers publish: posts of runs, a site of all runs, and the committed samples."""
