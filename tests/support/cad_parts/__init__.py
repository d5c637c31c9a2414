"""Random parts in the style of real ones, with the faces that a CAD program gives them, and their triangles."""
