"""`diskbook zone-affinity`: in which zone a zone-redundant disk answers, and whether it moved."""
