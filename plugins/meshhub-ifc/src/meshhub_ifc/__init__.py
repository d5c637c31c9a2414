"""Building models (IFC) for meshhub: declaration of the reader. Other modules do the work."""

from __future__ import annotations

from meshhub import Format, Reader, hookimpl

MESHHUB_API = "1.0"


@hookimpl
def meshhub_readers() -> list[Reader]:
    """Declare the reader; each file states its unit, Z is up."""
    return [
        Reader(
            format=Format(
                id="ifc",
                label="IFC",
                extensions=(".ifc",),
                media_types=("application/x-step", "application/p21"),
                specification="https://technical.buildingsmart.org/standards/ifc",
                memory_ratio=60.0,
            ),
            run="meshhub_ifc.reader:read",
            sniff="meshhub_ifc.sniff:sniff",
            needs=("ifcopenshell",),
            install="meshhub-ifc",
            carries=frozenset({"names", "hierarchy", "instances", "materials", "units"}),
            frame=None,
        )
    ]
