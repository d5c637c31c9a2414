"""From a STEP file to triangles through OpenCASCADE."""
