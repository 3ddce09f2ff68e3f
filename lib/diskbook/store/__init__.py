"""A run's folder: manifest, ledger, raw results, and the tables made from them."""
