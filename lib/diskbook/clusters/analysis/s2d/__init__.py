"""Parts of the analysis of `s2d-azure`: sweep, maps of ratios, wire, decision, readers' questions."""
