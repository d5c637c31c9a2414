"""STEP files through OpenCASCADE: text checks, XCAF document, products and placements, triangles."""
