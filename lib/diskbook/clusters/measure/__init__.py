"""Making volumes on nodes, and measuring and failing them."""
