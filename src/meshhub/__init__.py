"""meshhub: convert, repair and print-prepare 3D model files."""
