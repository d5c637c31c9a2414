"""Triangles of a mesh as planar facets, their graph and outlines, shells and bodies."""
