"""Shaded pictures of scenes, drawn by numpy: no display, no graphics library.

- `options`: options of a picture; loads without numpy.
- `picture`: `render`, the entry point, which arranges the views and adds captions and a legend.
- `triangles`, `camera`, `visibility`, `appearance`, `shading`, `outlines`: the steps for one view.
- `analysis`, `scales`: measures and defects in place of colors; loaded only for them, because they need scipy.
- `marks`, `legend`, `lettering`: circles, legends and text in pictures.

`meshhub.toolkit.png` encodes a picture.
"""

# why this way: docs/decisions/0022-pictures.md
