"""From a scene to the parts of a 3MF package."""
