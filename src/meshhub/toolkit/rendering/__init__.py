"""Shaded pictures of scenes, drawn by numpy: no display, no graphics library.

- `options`: what a caller can choose; imports no numpy.
- `picture`: `render`, the entry point; `palette` and `caption` add what people read beside the model.
- `camera`, `visibility`, `shading`, `outlines`: the steps for one view.

`meshhub.toolkit.png` encodes a picture.
"""
