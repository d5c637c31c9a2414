"""From triangles to regions, each on a plane or a surface of revolution."""

# why this way: docs/decisions/0015-step-writing.md
