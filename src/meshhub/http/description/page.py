"""OpenAPI document as a page for people: plain HTML, which Swagger UI replaces where scripts run."""

from __future__ import annotations

from html import escape
from typing import Any

from meshhub.errors import format_number
from meshhub.http.description.page_assets import SCRIPTS, STYLES
from meshhub.http.intake.explanation_requests import SOURCES

Json = dict[str, Any]


def page(document: Json) -> str:
    """Return the page for an OpenAPI document."""
    info = document["info"]
    sections = [
        _section(path, method, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]
    links = "".join(f"<link rel=stylesheet href=schema/{name}>" for name in STYLES)
    scripts = "".join(f"<script defer src=schema/{name}></script>" for name in SCRIPTS)
    return (
        "<!doctype html><html lang=en><head><meta charset=utf-8>"
        '<meta name=viewport content="width=device-width,initial-scale=1"><link rel=icon href=data:,>'
        f"<title>{escape(info['title'])}</title>{links}{scripts}</head><body><main id=reference>"
        f"<h1>{escape(info['title'])} {escape(info['version'])}</h1><p>{escape(info['summary'])} "
        "The same as <a href=schema/openapi.json>OpenAPI 3.1</a>. "
        "The header <code>X-Api-Key</code> is optional everywhere.</p>"
        f"{''.join(sections)}</main></body></html>"
    )


def _section(path: str, method: str, operation: Json) -> str:
    form = operation.get("requestBody", {}).get("content", {}).get("multipart/form-data", {}).get("schema")
    return (
        f"<h2><span class=method>{method.upper()}</span><code>{escape(path)}</code></h2>"
        f"<p>{escape(operation['summary'])}</p>{_example(path, method, form)}{_fields(form)}"
        f"{_responses(operation['responses'])}"
    )


def _example(path: str, method: str, form: Json | None) -> str:
    command = f"curl http://localhost:8000{path}"
    if form is not None:
        main = next(name for name in (*form["required"], "file") if name != "kind")
        values = {"archive": "@models.zip", SOURCES: '[{"name": "model.stl"}]'}
        command += " -F kind=convert" if "kind" in form["properties"] else ""
        command += f" -F '{main}={values.get(main, '@model.stl')}'"
        command += " -F target=3mf" if {"target", "kind"} & {*form["required"]} else ""
        command += " -OJ" if "target" in form["required"] else ""
    return f"<pre><code>{escape(command)}</code></pre>" if method in ("get", "post") else ""


def _fields(form: Json | None) -> str:
    if form is None:
        return ""
    rows = "".join(
        f"<tr><td><code>{escape(name)}</code>{' *' if name in form['required'] else ''}</td>"
        f"<td>{escape(_describe_value(field))}</td>"
        f"<td>{escape(field.get('description') or field.get('title', ''))}</td></tr>"
        for name, field in form["properties"].items()
    )
    return f"<table><tr><th>Field</th><th>Value</th><th></th></tr>{rows}</table>"


def _describe_value(field: Json) -> str:
    if field.get("format") == "binary":
        return "file"
    if field.get("items", {}).get("format") == "binary":
        return "files"
    if "enum" in field:
        return " | ".join(map(str, field["enum"]))
    symbols = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤"}
    bounds = [f"{symbol} {format_number(field[word])}" for word, symbol in symbols.items() if word in field]
    kind = {"boolean": "true | false", "integer": "whole number", "number": "number"}.get(field["type"], "text")
    if field.get("examples"):
        return " | ".join(map(str, field["examples"]))
    return " ".join([kind, *bounds])


def _responses(responses: Json) -> str:
    rows = [
        f"<tr><td>{escape(status)}</td><td>{_render_text(response['description'])}</td></tr>"
        for status, response in responses.items()
    ]
    return f"<table><tr><th>Status</th><th></th></tr>{''.join(rows)}</table>"


def _render_text(text: str) -> str:
    """Render a description whose only Markdown is line ends, list dashes and backticks."""
    return "<br>".join(_render_line(line.removeprefix("- ")) for line in text.split("\n"))


def _render_line(line: str) -> str:
    parts = escape(line).split("`")
    return "".join(f"<code>{part}</code>" if number % 2 else part for number, part in enumerate(parts))
