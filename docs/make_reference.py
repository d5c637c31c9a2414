"""Writes docs/reference.md from what is registered: `python docs/make_reference.py`. A test holds it up to date."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from meshhub import LOCAL, Registry
from meshhub.model.options import HostOptions, OptionField, option_fields
from meshhub.pipeline.declarations import Declarations
from meshhub.supported import supported

PAGE = Path(__file__).parent / "reference.md"


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _options(fields: tuple[OptionField, ...]) -> Iterator[str]:
    yield _row("form field", "flag", "values", "unless given", "what it does")
    yield _row(*["---"] * 5)
    for field in fields:
        kinds = {"flag": "true or false", "integer": "whole number", "number": "number", "text": "text"}
        values = ", ".join(field.choices) or kinds[field.kind]
        values += f", {field.bounds()}" if field.bounds() else ""
        default = {None: "–", False: "false", True: "true"}.get(field.default, str(field.default))  # type: ignore[call-overload]
        said = f"{field.title}. {field.description}".strip().rstrip(".") + "."
        yield _row(f"`{field.name}`", f"`{field.flag}`", values, default, said)


def _formats(have: Declarations, told: dict[str, Any]) -> Iterator[str]:
    yield _row("id", "format", "extensions", "media type", "reads", "writes", "reading carries", "writing carries")
    yield _row(*["---"] * 8)
    for name, one in told.items():
        reading = {feature for r in have.readers if r.capability.format.id == name for feature in r.capability.carries}
        writing = {feature for w in have.writers if w.capability.format.id == name for feature in w.capability.carries}
        yield _row(
            f"`{name}`",
            f"[{one['label']}]({one['specification']})" if one["specification"].startswith("http") else one["label"],
            " ".join(f"`{extension}`" for extension in one["extensions"]),
            f"`{one['media_types'][0]}`",
            "yes" if reading or one["read"] else "no",
            f"yes ({one['requires']})" if one["requires"] else "yes",
            ", ".join(sorted(reading)) or "–",
            ", ".join(sorted(writing)) or "–",
        )


def page() -> str:
    """The whole page."""
    registry = Registry(entry_points=False)
    have = registry.declarations
    lines = [
        "# Reference",
        "",
        "Made from what is registered by `docs/make_reference.py`; `meshhub formats`, `meshhub operations` and",
        "`/supported` tell the same, and what installed plug-ins add.",
        "",
        "## Formats",
        "",
        *_formats(have, supported(registry, LOCAL)["formats"]),
        "",
        "## Operations, in the order they run",
    ]
    for operation in have.operations:
        one = operation.capability
        drops = f" It drops: {', '.join(sorted(one.drops))}." if one.drops else ""
        lines += ["", f"### {one.label} (`{one.id}`, stage {one.stage.name.lower()})", ""]
        lines += [drops.strip(), ""] if drops else []
        lines += _options(option_fields(one.options))
    lines += ["", "## Options of every reader", "", *_options(option_fields(HostOptions))]
    for kind, sides in (("reading", have.readers), ("writing", have.writers)):
        seen = set()
        for side in sorted(sides, key=lambda one: one.capability.format.id):
            fields = option_fields(side.capability.options)
            if fields and side.capability.options not in seen:
                seen.add(side.capability.options)
                lines += ["", f"## Options of {kind} {side.capability.format.label}", "", *_options(fields)]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
