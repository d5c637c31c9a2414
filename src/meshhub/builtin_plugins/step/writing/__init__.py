"""From regions to edges, faces, solids and Part-21 text."""
