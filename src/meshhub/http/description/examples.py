"""Example requests and responses in the OpenAPI document."""

from __future__ import annotations

from typing import Any

FORM: dict[str, Any] = {
    "file": "(contents of bracket.stl)",
    "files": ["(contents of bracket.stl)", "(contents of handle.obj)"],
    "archive": "(contents of parts.zip)",
    "sources": '[{"name": "bracket.stl", "size": 684}]',
    "kind": "convert",
    "target": "3mf",
    "repair": True,
    "target_height_mm": 40,
    "place_on_bed": True,
}

INSPECTION: dict[str, Any] = {
    "source": {
        "format": "stl",
        "bytes": 684,
        "faces": 12,
        "parts": 1,
        "size_mm": [40.0, 20.0, 30.0],
        "frame": {"unit": "mm", "up": "z"},
    },
    "model": {
        "size_mm": [40.0, 20.0, 30.0],
        "bounds_mm": [[0.0, 0.0, 0.0], [40.0, 20.0, 30.0]],
        "faces": 12,
        "vertices": 8,
        "parts": 1,
        "bodies": 1,
        "cavities": 0,
        "holes": 0,
        "open_edges": 0,
        "nonmanifold_edges": 0,
        "inconsistent_edges": 0,
        "degenerate_faces": 0,
        "watertight": True,
        "volume_mm3": 24000.0,
        "area_mm2": 5200.0,
        "features": ["normals"],
        "parts_listed": [
            {
                "name": "block",
                "faces": 12,
                "bodies": 1,
                "cavities": 0,
                "watertight": True,
                "size_mm": [40.0, 20.0, 30.0],
                "volume_mm3": 24000.0,
            }
        ],
        "findings": [],
    },
    "feature_table": None,
    "notes": [],
}

EXPLANATION: dict[str, Any] = {
    "plan": "free",
    "files": [
        {
            "name": "bracket.stl",
            "format": "stl",
            "ok": True,
            "steps": [
                {
                    "kind": "read",
                    "id": "stl",
                    "label": "STL",
                    "because": "extension .stl",
                    "plugin": "stl",
                    "options": {},
                },
                {
                    "kind": "write",
                    "id": "3mf",
                    "label": "3MF",
                    "because": "target 3mf",
                    "plugin": "threemf",
                    "options": {},
                },
            ],
            "losses": [{"feature": "normals", "step": "3mf"}],
            "notes": [],
            "locked": [],
            "error": None,
            "error_code": None,
        }
    ],
    "locked": [],
}

PLAN: dict[str, Any] = {
    "plan": "free",
    "label": "Free",
    "limits": {
        "max_file_bytes": 20_971_520,
        "max_batch_files": 3,
        "requests_per_minute": 30,
        "conversion_timeout_seconds": 90.0,
        "max_request_bytes": 67_108_864,
        "request_timeout_seconds": 300.0,
        "max_unfinished_jobs": 5,
        "job_timeout_seconds": 90.0,
        "job_retention_seconds": 3600.0,
        "job_requests_per_minute": 300,
        "job_weight": 1,
        "job_listing": False,
        "job_webhooks": False,
    },
    "premium_formats": ["step"],
    "usage": {"requests_remaining": 29, "resets_in_seconds": 60},
    "publishable_key": None,
}

JOB: dict[str, Any] = {
    "id": "pYxV3rN0a6bQ1mT5cZ8kW2sD4fG7hJ9lR-eU_iO0pAs",
    "kind": "convert",
    "state": "running",
    "created": 1767225600.125,
    "started": 1767225601.5,
    "finished": None,
    "expires": None,
    "position": None,
    "progress": {
        "file": 0,
        "files": 1,
        "step": "repair",
        "kind": "operation",
        "label": "Repair",
        "index": 1,
        "count": 3,
        "fraction": 0.4,
    },
    "attempt": 1,
    "target": "3mf",
    "files": [{"name": "bracket.stl", "bytes": 684}],
    "result": None,
    "report": None,
    "error": None,
    "error_code": None,
    "details": None,
}

JOB_LIST: dict[str, Any] = {"jobs": [JOB], "next": None}

_NO_OPTIONS: dict[str, Any] = {"type": "object", "properties": {}, "additionalProperties": False}

SUPPORTED: dict[str, Any] = {
    "language": "en",
    "plan": "free",
    "input_formats": ["stl"],
    "output_formats": ["stl"],
    "formats": {
        "stl": {
            "label": "STL",
            "extensions": [".stl"],
            "media_types": ["model/stl"],
            "specification": None,
            "read": True,
            "write": True,
            "requires": None,
            "allowed": True,
            "objection": None,
            "carries": ["names"],
            "features": {"names": {"read": True, "write": False, "options": ["stl_ascii"]}},
            "remedy": None,
            "options": _NO_OPTIONS,
            "plugins": ["stl"],
        }
    },
    "operations": [],
    "options": _NO_OPTIONS,
    "recipes": {
        "print": {
            "label": "3D print",
            "description": "A valid, closed mesh on the print bed.",
            "options": {"repair": True, "place_on_bed": True},
        }
    },
    "plugins": [{"name": "stl", "origin": "built in", "api_version": ""}],
    "faults": [],
}

SCHEMA: dict[str, Any] = {"openapi": "3.1.0", "info": {"title": "meshhub"}, "paths": {}}
