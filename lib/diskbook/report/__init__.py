"""What a run says: tables, figures, notebooks' output, comparisons. Asks no machine."""
