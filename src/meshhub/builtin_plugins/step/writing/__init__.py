"""STEP output: curves, seams and checks of a boundary representation, and its Part-21 text."""
