"""Values and styles of SVG: style sheets, inheritance, lengths, colors and transforms."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from meshhub_cad.profiles import Points
from meshhub_cad.svg_paths import NUMBER, parse_numbers

Element = ElementTree.Element
Style = dict[str, str]

_INHERITED = frozenset({
    "clip-rule", "color", "fill", "fill-opacity", "fill-rule", "font-size", "marker-end", "marker-mid", "marker-start",
    "stroke", "stroke-dasharray", "stroke-dashoffset", "stroke-linecap", "stroke-linejoin", "stroke-miterlimit",
    "stroke-opacity", "stroke-width", "visibility",
})  # fmt: skip
_OTHERS = frozenset({
    "clip-path", "cx", "cy", "d", "display", "filter", "height", "mask", "mask-type", "opacity", "overflow", "r", "rx",
    "ry", "stop-color", "stop-opacity", "transform", "transform-box", "transform-origin", "vector-effect", "width", "x",
    "y",
})  # fmt: skip
_PROPERTIES = _INHERITED | _OTHERS

_FONT_SIZE_PX = 16.0
"""Pixels of 1em without a font size, as in browsers."""

_MAX_VALUE_CHARACTERS = 10_000
"""Characters of a value with variables, which nested elements may double at each level."""

_PER_INCH = {"mm": 25.4, "cm": 2.54, "in": 1.0, "pt": 72.0, "pc": 6.0, "q": 101.6}
_LENGTH = re.compile(rf"\s*({NUMBER})\s*(px|mm|cm|in|pt|pc|q|em|ex|rem|%)?\s*", re.ASCII | re.IGNORECASE)

_COMMENT = re.compile(r"/\*.*?\*/|<!--|-->", re.DOTALL)
_SELECTOR = re.compile(r"(?:\*|[-\w]+)?(?:[.#][-\w]+|\[[^\]]*\]|:[-\w]+)*")
_SIMPLE = re.compile(r"[.#:]?[-\w]+|\*|\[[^\]]*\]")
_ATTRIBUTE = re.compile(r"""\[\s*([-\w:]+)\s*(?:([~|^$*]?=)\s*["']?([^"'\]]*?)["']?\s*)?\]""")


def tag_of(element: Element) -> str:
    """Return the name of an element without its namespace."""
    return str(element.tag).rpartition("}")[2]


class _Rule(NamedTuple):
    """Declarations of a style sheet for one selector, whose last part is at the end of `parts`."""

    weight: tuple[int, int, int, int]
    parts: list[str]
    combinators: list[str]
    declarations: list[tuple[str, str, bool]]


class StyleSheet:
    """Styles of a document: attributes, style sheets, and inheritance (SVG 2 §6).

    Attributes:
        unsupported_count: Rules whose selectors are not supported.
    """

    def __init__(self, root: Element) -> None:
        self.unsupported_count = 0
        self._rules: dict[str, list[_Rule]] = defaultdict(list)
        self._parents = {child: parent for parent in root.iter() for child in parent}
        self._own: dict[Element, Style] = {}
        texts = [
            "".join(element.itertext())
            for element in root.iter()
            if tag_of(element) == "style"
            and element.get("type", "text/css") in ("text/css", "")
            and _is_screen(element.get("media", ""))
        ]
        count = 0
        for selectors, body in _list_blocks(_COMMENT.sub(" ", "\n".join(texts))):
            declarations = _parse_declarations(body)
            for selector in selectors.split(","):
                count += 1
                self._add_rule(selector.strip(), declarations, count)

    def resolve(self, element: Element, inherited: Style) -> Style:
        """Return the style of an element; properties that it lacks are missing."""
        own = self._own.get(element)
        if own is None:
            own = self._own[element] = self._list_own(element)
        style = {name: value for name, value in inherited.items() if name in _INHERITED or name.startswith("--")}
        for name, value in own.items():
            if value == "inherit":
                value = inherited.get(name, "")
            if value in ("", "initial", "unset"):
                if value == "initial" or name not in _INHERITED:
                    style.pop(name, None)
                continue
            style[name] = value
        return {name: _replace_variables(value, style) if "var(" in value else value for name, value in style.items()}

    def _list_own(self, element: Element) -> Style:
        own = {name: value.strip() for name, value in element.attrib.items() if name in _PROPERTIES}
        names = [tag_of(element), "*", f"#{element.get('id')}", *(f".{name}" for name in _classes(element))]
        rules = sorted(rule for name in names for rule in self._rules.get(name, ()) if self._matches(rule, element))
        declarations = [each for rule in rules for each in rule.declarations]
        declarations += _parse_declarations(_COMMENT.sub(" ", element.get("style", "")))
        # important declarations come last
        return own | {name: value for name, value, _ in sorted(declarations, key=lambda each: each[2])}

    def _add_rule(self, selector: str, declarations: list[tuple[str, str, bool]], count: int) -> None:
        pieces = re.split(r"\s*([>+~])\s*|\s+", selector)
        parts = pieces[::2]
        if not all(_SELECTOR.fullmatch(part) and part for part in parts):
            self.unsupported_count += 1
            return
        simple = [each for part in parts for each in _SIMPLE.findall(part)]
        ids = sum(each.startswith("#") for each in simple)
        classes = sum(each[0] in ".[:" for each in simple)
        tags = sum(each[0] not in "#.[:*" for each in simple)
        last = _SIMPLE.findall(parts[-1])
        keys = [each for each in last if each[0] in "#."] or [each for each in last if each[0] not in "[:"]
        rule = _Rule((ids, classes, tags, count), parts, [each or " " for each in pieces[1::2]], declarations)
        self._rules[keys[-1] if keys else "*"].append(rule)

    def _matches(self, rule: _Rule, element: Element, at: int = -1) -> bool:
        if not self._matches_part(rule.parts[at], element):
            return False
        if -at == len(rule.parts):
            return True
        combinator = rule.combinators[at]
        candidates = self._list_parents(element) if combinator in "> " else self._list_before(element)
        found = candidates[:1] if combinator in ">+" else candidates
        return any(self._matches(rule, candidate, at - 1) for candidate in found)

    def _list_parents(self, element: Element) -> list[Element]:
        parents = []
        while (parent := self._parents.get(element)) is not None:
            parents.append(parent)
            element = parent
        return parents

    def _list_before(self, element: Element) -> list[Element]:
        """Return the siblings before an element, the nearest first."""
        parent = self._parents.get(element)
        siblings = [] if parent is None else list(parent)
        return siblings[: siblings.index(element)][::-1] if siblings else []

    def _matches_part(self, part: str, element: Element) -> bool:
        return all(self._matches_simple(each, element) for each in _SIMPLE.findall(part))

    def _matches_simple(self, simple: str, element: Element) -> bool:
        first = simple[0]
        if first == "#":
            return element.get("id") == simple[1:]
        if first == ".":
            return simple[1:] in _classes(element)
        if first == "[":
            return _matches_attribute(simple, element)
        if first == ":":
            # states such as :hover match nothing
            parent = self._parents.get(element)
            return (simple == ":root" and parent is None) or (
                parent is not None
                and (
                    (simple == ":first-child" and parent[0] is element)
                    or (simple == ":last-child" and parent[-1] is element)
                )
            )
        return simple in ("*", tag_of(element))


def _classes(element: Element) -> list[str]:
    return element.get("class", "").split()


def _matches_attribute(simple: str, element: Element) -> bool:
    match = _ATTRIBUTE.fullmatch(simple)
    if match is None:
        return False
    name, operator, expected = match.groups()
    value = element.get(name)
    if value is None or operator is None:
        return value is not None
    return {
        "=": value == expected,
        "~=": expected in value.split(),
        "|=": value == expected or value.startswith(f"{expected}-"),
        "^=": value.startswith(expected),
        "$=": value.endswith(expected),
        "*=": expected in value,
    }[operator]


def _is_screen(media: str) -> bool:
    """Return whether a list of media queries applies to a screen, without regard to its size and colors."""
    queries = [query.strip().lower() for query in media.split(",")]
    return any(query in ("", "all", "screen", "only screen") for query in queries)


def _list_blocks(text: str) -> Iterator[tuple[str, str]]:
    """Yield selectors and declarations of a style sheet, with the rules inside of @media for screens."""
    position = 0
    while (opening := text.find("{", position)) >= 0:
        prelude = text[position:opening].rpartition(";")[2].strip()
        depth, end = 1, opening + 1
        while depth:
            brace = re.compile(r"[{}]").search(text, end)
            if brace is None:
                end = len(text) + 1
                break
            depth += 1 if brace[0] == "{" else -1
            end = brace.end()
        body = text[opening + 1 : end - 1]
        if prelude.startswith("@media") and _is_screen(prelude[6:]):
            yield from _list_blocks(body)
        elif not prelude.startswith("@"):
            yield prelude, body
        position = end


def _parse_declarations(text: str) -> list[tuple[str, str, bool]]:
    """Return the properties, their values, and whether they are important."""
    declarations: list[tuple[str, str, bool]] = []
    # semicolons in brackets and quotes belong to a value
    for declaration in re.findall(r"""(?:[^;("']|\([^)]*\)|"[^"]*"|'[^']*'|[("'])+""", text):
        name, _, value = declaration.partition(":")
        name, value = name.strip(), value.strip()
        is_important = re.search(r"!\s*important$", value, re.IGNORECASE) is not None
        if is_important:
            value = value.rpartition("!")[0].strip()
        name = name if name.startswith("--") else name.lower()
        names = ("marker-start", "marker-mid", "marker-end") if name == "marker" else (name,)
        declarations += [(each, value, is_important) for each in names if each in _PROPERTIES or each.startswith("--")]
    return declarations


def _replace_variables(value: str, style: Style) -> str:
    """Return a value with its var(--name, fallback) replaced; they may not nest. A long one is invalid."""
    result = re.sub(
        r"var\(\s*(--[-\w]+)\s*(?:,\s*((?:[^()]|\([^()]*\))*))?\)",
        lambda match: style.get(match[1], match[2] or "").strip(),
        value,
    )
    return result if len(result) <= _MAX_VALUE_CHARACTERS else ""


class Units(NamedTuple):
    """Pixels per inch, font size in pixels, and width and height of the viewport, for lengths."""

    dpi: float
    em: float
    width: float
    height: float

    def parse(self, text: str, axis: str = "d") -> float | None:
        """Return a length in pixels; None if it is none.

        Args:
            text: Length with or without unit.
            axis: Side of the viewport to which a percentage refers: "x", "y", or "d" for its diagonal.
        """
        match = _LENGTH.fullmatch(text)
        if match is None:
            return None
        value, unit = float(match[1]), (match[2] or "px").lower()
        if unit in _PER_INCH:
            return value / _PER_INCH[unit] * self.dpi
        diagonal = math.hypot(self.width, self.height) / math.sqrt(2)
        percent = {"x": self.width, "y": self.height, "d": diagonal}[axis] / 100
        return value * {"px": 1.0, "em": self.em, "rem": _FONT_SIZE_PX, "ex": self.em / 2, "%": percent}[unit]

    def with_font(self, style: Style) -> Units:
        """Return the units with the font size of a style, unless it is relative to that of its parent."""
        size = self._replace(em=_FONT_SIZE_PX).parse(style.get("font-size", ""))
        return self._replace(em=_FONT_SIZE_PX if size is None else size)


def is_physical(text: str) -> bool:
    """Return whether a length has a physical unit."""
    match = _LENGTH.fullmatch(text)
    return match is not None and (match[2] or "").lower() in _PER_INCH


def reference_of(value: str) -> str | None:
    """Return the id in a value such as url(#id); None for another value."""
    match = re.match(r"""url\(\s*["']?\s*#([^"')]+?)\s*["']?\s*\)""", value)
    return match[1] if match else None


def parse_ratio(text: str) -> float:
    """Return an opacity with or without percent sign; 1 for an invalid one."""
    match = _LENGTH.fullmatch(text)
    if match is None or (match[2] or "%") != "%":
        return 1.0
    return float(match[1]) / (100 if match[2] else 1)


def is_transparent(color: str) -> bool:
    """Return whether a color paints nothing."""
    color = color.strip().lower()
    if color in ("none", "transparent", ""):
        return True
    if color.startswith("#"):
        digits = color[1:]
        return (len(digits) == 4 and digits[3] == "0") or (len(digits) == 8 and digits[6:] == "00")
    match = re.fullmatch(r"(?:rgb|hsl)a?\((.*)\)", color)
    if match is None:
        return False
    values = re.split(r"[\s,/]+", match[1].strip())
    return len(values) > 3 and parse_ratio(values[3]) <= 0


_TRANSFORM = re.compile(r"\s*,?\s*([a-zA-Z]+)\s*\(([^)]*)\)\s*")
_ARGUMENT = re.compile(rf"({NUMBER})(deg|grad|rad|turn|px|mm|cm|in|pt|pc|q|em|%)?", re.ASCII | re.IGNORECASE)
_DEGREES = {"": 1.0, "deg": 1.0, "grad": 0.9, "rad": 180 / math.pi, "turn": 360.0}


def translation(x: float, y: float) -> Points:
    """Return the matrix of a translation."""
    return np.array([(1.0, 0.0, x), (0.0, 1.0, y), (0.0, 0.0, 1.0)])


def affine(a: float, b: float, c: float, d: float, e: float = 0.0, f: float = 0.0) -> Points:
    """Return the matrix with these values in the order of SVG."""
    return np.array([(a, c, e), (b, d, f), (0.0, 0.0, 1.0)])


def parse_transform(text: str, units: Units) -> Points:
    """Return the matrix of a list of transforms, as attribute or CSS; the identity for an invalid list."""
    matrix = np.eye(3)
    position = 0
    while (match := _TRANSFORM.match(text, position)) is not None:
        position = match.end()
        step = _parse_function(match[1].lower(), _ARGUMENT.findall(match[2]), units)
        if step is None:
            return np.eye(3)
        matrix = matrix @ step
    return matrix if position == len(text) else np.eye(3)


def _parse_function(name: str, arguments: list[tuple[str, str]], units: Units) -> Points | None:
    lengths = [
        units.parse(number + unit, axis) or 0.0 for (number, unit), axis in zip(arguments, "xy" * 8, strict=False)
    ]
    numbers = [float(number) / (100 if unit == "%" else 1) for number, unit in arguments]
    degrees = [float(number) * _DEGREES.get(unit.lower(), 1.0) for number, unit in arguments]
    match name, len(arguments):
        case "matrix", 6:
            return affine(*numbers)
        case (("translate" | "translatex"), 1):
            return translation(lengths[0], 0.0)
        case (("translate" | "translate3d"), (2 | 3)):
            return translation(lengths[0], lengths[1])
        case "translatey", 1:
            return translation(0.0, units.parse("".join(arguments[0]), "y") or 0.0)
        case _:
            return _parse_turn(name, numbers, degrees)


def _parse_turn(name: str, numbers: list[float], degrees: list[float]) -> Points | None:
    """Return the matrix of a scale, rotation or skew."""
    match name, len(numbers):
        case "scale", 1:
            return affine(numbers[0], 0, 0, numbers[0])
        case (("scale" | "scale3d"), (2 | 3)):
            return affine(numbers[0], 0, 0, numbers[1])
        case "scalex", 1:
            return affine(numbers[0], 0, 0, 1)
        case "scaley", 1:
            return affine(1, 0, 0, numbers[0])
        case (("rotate" | "rotatez"), 1):
            return rotation(degrees[0])
        case "rotate", 3:
            return translation(*numbers[1:]) @ rotation(degrees[0]) @ translation(-numbers[1], -numbers[2])
        case (("skew" | "skewx"), 1):
            return affine(1, 0, math.tan(math.radians(degrees[0])), 1)
        case "skew", 2:
            return affine(1, math.tan(math.radians(degrees[1])), math.tan(math.radians(degrees[0])), 1)
        case "skewy", 1:
            return affine(1, math.tan(math.radians(degrees[0])), 0, 1)
        case _:
            return None


def rotation(degrees: float) -> Points:
    """Return the matrix of a rotation."""
    cos, sin = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    return affine(cos, sin, -sin, cos)


def parse_origin(text: str, units: Units) -> tuple[float, float]:
    """Return the values of transform-origin; percentages refer to the size of the units."""
    words = {"left": "0%", "top": "0%", "center": "50%", "right": "100%", "bottom": "100%"}
    values = text.split()[:2] or ["0", "0"]
    if values[0] in ("top", "bottom") or values[-1] in ("left", "right"):
        values = (
            values[::-1] if len(values) == 2 else (["center", *values] if values[0] in ("top", "bottom") else values)
        )
    values = [words.get(value, value) for value in [*values, "center"][:2]]
    return units.parse(values[0], "x") or 0.0, units.parse(values[1], "y") or 0.0


def fit_box(box: list[float], size: tuple[float, float], preserve: str) -> Points:
    """Return the matrix from a view box to a viewport at the origin.

    Source:
        SVG 2 §8.2.
    """
    x, y, width, height = box
    scale_x, scale_y = size[0] / width, size[1] / height
    words = preserve.split()
    align = next((word for word in words if word.startswith(("x", "none"))), "xMidYMid")
    if align != "none":
        scale_x = scale_y = max(scale_x, scale_y) if "slice" in words else min(scale_x, scale_y)
    share = {"Min": 0.0, "Mid": 0.5, "Max": 1.0}
    left = share.get(align[1:4], 0.0) * (size[0] - width * scale_x)
    top = share.get(align[5:8], 0.0) * (size[1] - height * scale_y)
    return translation(left, top) @ affine(scale_x, 0, 0, scale_y) @ translation(-x, -y)


def parse_view_box(element: Element) -> list[float] | None:
    """Return the values of a view box that has an area."""
    values = parse_numbers(element.get("viewBox", ""))
    return values if len(values) == 4 and min(values[2:]) > 0 else None
