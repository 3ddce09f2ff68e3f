"""A run's analysis: tables, figures and findings, written into its folder and its report."""
