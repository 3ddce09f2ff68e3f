"""Public measurements of Azure's noise, `diskbook import --dataset`: read, recomputed, shown."""
