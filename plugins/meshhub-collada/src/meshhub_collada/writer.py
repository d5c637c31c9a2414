"""COLLADA writer: version 1.4.1, which every program reads; textures are companions."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from xml.sax.saxutils import escape, quoteattr

import numpy as np
from numpy.typing import NDArray

from meshhub import Image, Material, Mesh, NoOptions, Part, Scene, Target, did, note
from meshhub.toolkit.columns import shortest, write_rows
from meshhub.toolkit.names import single_line

_EXTENSIONS = {"image/png": ".png", "image/jpeg": ".jpg", "image/webp": ".webp", "image/gif": ".gif",
               "image/bmp": ".bmp", "image/tiff": ".tif", "image/x-tga": ".tga"}  # fmt: skip

_PART_SYMBOL = "part"
"""Symbol of the faces that have no material themselves; each instance binds it to the material of the part."""

_MIN_ALPHA = 1e-9
"""Opacity below which a material would be invisible."""

_SETS = {"TEXCOORD": ' set="0"'}

Pieces = Iterator[bytes | memoryview]


def write(scene: Scene, target: Target, options: NoOptions) -> None:  # noqa: ARG001
    """Write a scene as COLLADA; each mesh once, placed by nodes."""
    parts = [part for part in scene.parts if len(scene.meshes[part.mesh].faces)]
    used = scene.used_materials()
    files: dict[int, str] = {}
    for index in sorted({image for each in used for image in _shown_images(scene.materials[each])}):
        files[index] = _file_name(scene.images[index])
        target.companion(files[index], scene.images[index].data)
    if files:
        did(companions=len(set(files.values())))
    with target.open() as file:
        for piece in _document(scene, parts, used, files):
            file.write(piece)


def _shown_images(material: Material) -> tuple[int, ...]:
    """Return the images of a material that the common profile can show; others get a note."""
    shown = tuple(each for each in (material.base_color_image, material.emissive_image) if each is not None)
    if len(material.images()) > len(shown):
        note("maps_dropped", "dropped normal, roughness and occlusion maps: COLLADA has no standard place for them")
    if material.base_color_image is not None and min(material.base_color[:3]) < 1:
        note("tint_dropped", "dropped the color of a material with a texture: COLLADA holds one or the other")
    return shown


def _file_name(image: Image) -> str:
    digest = hashlib.sha256(image.data).hexdigest()[:16]
    return f"texture-{digest}{_EXTENSIONS.get(image.media_type, '.bin')}"


def _document(scene: Scene, parts: Sequence[Part], used: Sequence[int], files: dict[int, str]) -> Pieces:
    """Yield the pieces of the document."""
    # a fixed date, so that the same scene gives the same bytes
    yield (
        b'<?xml version="1.0" encoding="utf-8"?>\n'
        b'<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">\n<asset>\n'
    )
    yield _contributor(scene).encode()
    yield b"<created>1980-01-01T00:00:00Z</created>\n<modified>1980-01-01T00:00:00Z</modified>\n"
    yield (f"<title>{_text(scene.name)}</title>\n" if _text(scene.name) else "").encode()
    yield b'<unit name="millimeter" meter="0.001"/>\n<up_axis>Z_UP</up_axis>\n</asset>\n'
    if files:
        yield from _library("images", (_image(index, name) for index, name in files.items()))
    if used:
        yield from _library("effects", (_effect(index, scene.materials[index], files) for index in used))
        yield from _library("materials", (_material(index, scene.materials[index]) for index in used))
    yield b"<library_geometries>\n"
    for index in sorted({part.mesh for part in parts}):
        yield from _geometry(index, scene.meshes[index])
    yield b'</library_geometries>\n<library_visual_scenes>\n<visual_scene id="scene">\n'
    yield "".join(_nodes(scene, parts)).encode()
    yield b"</visual_scene>\n</library_visual_scenes>\n"
    yield b'<scene><instance_visual_scene url="#scene"/></scene>\n</COLLADA>\n'


def _text(text: str) -> str:
    return escape(single_line(text))


def _name(text: str) -> str:
    """Return a name attribute, or nothing for an empty name."""
    name = single_line(text)
    return f" name={quoteattr(name)}" if name else ""


def _contributor(scene: Scene) -> str:
    metadata = {key.casefold(): value for key, value in scene.metadata.items()}
    texts = {key: _text(metadata.get(key, "")) for key in ("author", "copyright")}
    # in the order of the schema
    fields = [("author", texts["author"]), ("authoring_tool", "meshhub"), ("copyright", texts["copyright"])]
    return f"<contributor>{''.join(f'<{key}>{text}</{key}>' for key, text in fields if text)}</contributor>\n"


def _library(kind: str, elements: Iterator[str]) -> Pieces:
    yield f"<library_{kind}>\n{''.join(elements)}</library_{kind}>\n".encode()


def _image(index: int, file_name: str) -> str:
    return f'<image id="image-{index}"><init_from>{file_name}</init_from></image>\n'


def _material(index: int, material: Material) -> str:
    return (
        f'<material id="material-{index}"{_name(material.name)}><instance_effect url="#effect-{index}"/></material>\n'
    )


def _effect(index: int, material: Material, files: dict[int, str]) -> str:
    """Return an effect: lambert, or constant for an unlit material."""
    alpha = max(material.base_color[3], 0.0) if material.alpha_mode != "opaque" else 1.0
    parameters: list[str] = []

    def slot(name: str, image: int | None, color: Sequence[float]) -> str:
        if image not in files:
            return f"<{name}><color>{' '.join(repr(round(float(value), 6)) for value in color)}</color></{name}>"
        parameters.append(
            f'<newparam sid="surface-{image}"><surface type="2D"><init_from>image-{image}</init_from></surface>'
            f'</newparam><newparam sid="sampler-{image}"><sampler2D><source>surface-{image}</source></sampler2D>'
            f"</newparam>"
        )
        return f'<{name}><texture texture="sampler-{image}" texcoord="UVSET0"/></{name}>'

    if material.unlit:
        shader = "constant", slot("emission", material.base_color_image, (*material.base_color[:3], 1.0))
    else:
        slots = slot("diffuse", material.base_color_image, (*material.base_color[:3], 1.0))
        if any(material.emissive) or material.emissive_image is not None:
            slots = slot("emission", material.emissive_image, (*material.emissive, 1.0)) + slots
        shader = "lambert", slots
    transparent = ""
    if _MIN_ALPHA < alpha < 1:
        transparent = (
            '<transparent opaque="A_ONE"><color>1 1 1 1</color></transparent>'
            f"<transparency><float>{round(alpha, 6)}</float></transparency>"
        )
    return (
        f'<effect id="effect-{index}"><profile_COMMON>{"".join(dict.fromkeys(parameters))}<technique sid="common">'
        f"<{shader[0]}>{shader[1]}{transparent}</{shader[0]}></technique></profile_COMMON></effect>\n"
    )


def _geometry(index: int, mesh: Mesh) -> Pieces:
    """Yield a geometry: a source per attribute, and a <triangles> per material."""
    own = f"mesh-{index}"
    yield f'<geometry id="{own}"{_name(mesh.name)}><mesh>\n'.encode()
    yield from _source(f"{own}-positions", shortest(mesh.vertices), "XYZ")
    inputs = [("VERTEX", f"{own}-vertices")]
    for semantic, values, components in (
        ("NORMAL", mesh.normals, "XYZ"),
        ("TEXCOORD", mesh.uv, "ST"),
        ("COLOR", None if mesh.colors is None else np.round(mesh.colors / 255, 6), "RGBA"),
    ):
        if values is not None:
            yield from _source(f"{own}-{semantic.lower()}", shortest(values), components)
            inputs.append((semantic, f"{own}-{semantic.lower()}"))
    yield f'<vertices id="{own}-vertices"><input semantic="POSITION" source="#{own}-positions"/></vertices>\n'.encode()
    tags = "".join(
        f'<input semantic="{semantic}" source="#{source}" offset="0"{_SETS.get(semantic, "")}/>'
        for semantic, source in inputs
    )
    material = np.full(len(mesh.faces), -1) if mesh.face_material is None else mesh.face_material
    for each in np.unique(material).tolist():
        faces = mesh.faces[material == each]
        yield f'<triangles material="{_symbol(each)}" count="{len(faces)}">{tags}\n<p>\n'.encode()
        yield write_rows(["", " ", " ", "\n"], list(faces.T))
        yield b"</p></triangles>\n"
    yield b"</mesh></geometry>\n"


def _symbol(material: int) -> str:
    return _PART_SYMBOL if material < 0 else f"symbol-{material}"


def _source(identifier: str, values: NDArray[np.floating], components: str) -> Pieces:
    """Yield a <source> of (n, k) values."""
    count, width = values.shape
    yield f'<source id="{identifier}"><float_array id="{identifier}-array" count="{values.size}">\n'.encode()
    yield write_rows(["", *[" "] * (width - 1), "\n"], list(values.T))
    params = "".join(f'<param name="{component}" type="float"/>' for component in components)
    yield (
        f'</float_array><technique_common><accessor source="#{identifier}-array" count="{count}" stride="{width}">'
        f"{params}</accessor></technique_common></source>\n"
    ).encode()


def _nodes(scene: Scene, parts: Sequence[Part]) -> Iterator[str]:
    """Yield the nodes of the parts, inside the nodes of their groups."""
    opened: tuple[str, ...] = ()
    for number, part in enumerate(parts):
        common = 0
        while common < min(len(opened), len(part.path)) and opened[common] == part.path[common]:
            common += 1
        yield "</node>\n" * (len(opened) - common)
        for depth in range(common, len(part.path)):
            yield f'<node id="group-{number}-{depth}"{_name(part.path[depth])}>\n'
        opened = part.path
        yield _node(scene, number, part)
    yield "</node>\n" * len(opened)


def _node(scene: Scene, number: int, part: Part) -> str:
    """Return the node of a part."""
    mesh = scene.meshes[part.mesh]
    own = [-1] if mesh.face_material is None else np.unique(mesh.face_material).tolist()
    targets = [(_symbol(each), part.material if each < 0 else each) for each in own]
    bindings = "".join(
        f'<instance_material symbol="{symbol}" target="#material-{material}">'
        '<bind_vertex_input semantic="UVSET0" input_semantic="TEXCOORD" input_set="0"/></instance_material>'
        for symbol, material in targets
        if material is not None
    )
    binding = f"<bind_material><technique_common>{bindings}</technique_common></bind_material>" if bindings else ""
    matrix = " ".join(repr(value + 0.0) for value in part.transform.ravel().tolist())
    return (
        f'<node id="node-{number}"{_name(part.name)}><matrix sid="transform">{matrix}</matrix>'
        f'<instance_geometry url="#mesh-{part.mesh}">{binding}</instance_geometry></node>\n'
    )
