"""Tables and sentences, as notebooks and reports show them."""
