"""Boundary representations from regions: curves, seams, and checks of the result."""
