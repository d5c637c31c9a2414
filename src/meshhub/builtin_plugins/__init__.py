"""The plug-ins that come with meshhub. Each is an ordinary plug-in: a folder that uses only the public hooks."""

BUILTINS = (
    # formats; why their readers are our own: docs/decisions/0030-own-readers.md
    "stl",
    "obj",
    "ply",
    "gltf",  # glTF and GLB
    "threemf",  # 3MF
    "step",  # reading needs the extra `step`; writing needs the entitlement `pro`
    # operations, in the order in which they run
    "repair",
    "optimize",  # optimize_target_faces
    "lay_flat",
    "mirror",
    "orient",
    "rotate",
    "fit",
    "scale",
    "target_height",
    "boolean",
    "fill_holes",
    "offset",
    "thicken",
    "hollow",
    "flatten_base",
    "merge_parts",
    "plinth",
    "chamfer_base",
    "drain",
    "emboss",
    "cut_plane",
    "copies",
    "split_for_bed",
    "split_parts",
    "reduce_colors",
    "arrange",
    "place_on_bed",
    # checks
    "print",
    # customer plans
    "plans",
    # named lists of options
    "recipes",
)
"""Folder names of the built-in plug-ins."""
