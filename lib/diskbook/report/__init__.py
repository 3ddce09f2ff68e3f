"""What a run says: tables, figures, notebooks' output, comparisons, posts, sites. Asks no machine."""
