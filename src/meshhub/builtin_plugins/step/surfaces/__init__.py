"""Surfaces of all kinds in arrays, and their fits to points and normals."""
