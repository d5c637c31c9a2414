"""From triangles to regions, each on a plane or a surface of revolution."""
