"""A whole run: begin, stages, notebooks, progress, samples, and the sweep of what lost runs left."""
