"""Endpoints: the handler of a path, and the facts from which the OpenAPI document describes it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from litestar.handlers import HTTPRouteHandler

from meshhub.http.description.parts import Json, refer_to
from meshhub.http.errors import MEANING, STATUS
from meshhub.http.headers import RESPONSE_HEADERS
from meshhub.registry import Registry

Tag = Literal["conversion", "jobs", "description", "monitoring"]

_COMMON_CODES = (
    "request_timeout",
    "invalid_api_key",
    "rate_limit_exceeded",
    "internal_error",
    "server_busy",
    "host_not_allowed",
)


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """Handler of a path with its description. The id of the operation is the name of the handler, and never changes.

    Attributes:
        handler: Handler of the path; its docstring is for readers of the code.
        summary: Title for people.
        tag: Name of its tag.
        answer: Returns the response of a success.
        codes: Error codes, in addition to those of every endpoint.
        headers: Names of the response headers that only some endpoints send; `meshhub.http.headers` describes them.
        types: Types of the responses in JSON.
        form: Returns the form of the request; None for a request without one.
        parameters: Parameters of path, query and headers.
        others: Further successful responses by status.
    """

    handler: HTTPRouteHandler
    summary: str
    tag: Tag
    answer: Callable[[Registry], Json]
    codes: Iterable[str] = ()
    headers: Iterable[str] = ()
    types: tuple[type, ...] = ()
    form: Callable[[Registry], Json] | None = None
    parameters: Iterable[Json] = ()
    others: Mapping[int, Callable[[Registry], Json]] = field(default_factory=dict)

    @property
    def path(self) -> str:
        """The path, with parameters in braces."""
        (path,) = self.handler.paths
        return path.replace(":str}", "}")

    @property
    def method(self) -> str:
        """The method in lower case."""
        (method,) = self.handler.http_methods
        return method.lower()

    def describe(self, registry: Registry) -> Json:
        """Return the operation of the OpenAPI document."""
        name = self.handler.handler_name
        others = {
            str(status): {**answer(registry), "headers": self._refer_to_headers(status)}
            for status, answer in self.others.items()
        }
        status = self.handler.status_code
        success = {**self.answer(registry), "headers": self._refer_to_headers(status)}
        operation: Json = {
            "operationId": name,
            "summary": self.summary,
            "tags": [self.tag],
            "responses": {str(status): success, **self._errors(), **others},
        }
        if self.tag == "monitoring":
            operation["security"] = []
        if self.form is not None:
            operation["requestBody"] = self.form(registry)
        if self.parameters:
            operation["parameters"] = [*self.parameters]
        return operation

    def _refer_to_headers(self, status: int) -> Json:
        """Return references to the headers of the responses with a status."""
        return {
            header.name: refer_to(header.name, "headers")
            for header in RESPONSE_HEADERS
            if (not header.statuses or status in header.statuses)
            and (header.name in self.headers if header.tags is None else self.tag in header.tags)
        }

    def _errors(self) -> Json:
        """Return the error responses by status, each with its possible codes."""
        common = _COMMON_CODES if self.tag != "monitoring" else ("host_not_allowed",)
        codes_by_status: dict[int, list[str]] = {}
        for code in dict.fromkeys((*self.codes, *common)):
            codes_by_status.setdefault(STATUS[code], []).append(code)
        return {
            str(status): {
                "description": "\n".join(f"- `{code}`: {MEANING[code]}" for code in codes),
                "headers": self._refer_to_headers(status),
                "content": {
                    "application/json": {
                        "schema": refer_to("ErrorBody"),
                        "examples": {code: refer_to(code, "examples") for code in codes},
                    }
                },
            }
            for status, codes in sorted(codes_by_status.items())
        }
