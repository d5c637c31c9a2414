"""From a 3MF package to a scene."""
