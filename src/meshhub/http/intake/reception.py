"""Reception of a form over HTTP: admission, disk space, deadline and folder of one request."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec
from litestar import Request

from meshhub.engine.task_slots import shutdown_error
from meshhub.errors import quote
from meshhub.http.admission.resources import Resources
from meshhub.http.context import caller_of, context_of
from meshhub.http.errors import ClientGone, ServiceError
from meshhub.http.intake.conversion_requests import CompleteOptions, ConversionRequest, parse_form
from meshhub.http.intake.file_options import FIELD, parse_file_options
from meshhub.http.intake.inventories import INVENTORY, fill_inventories
from meshhub.http.intake.uploads import MEGABYTE, FileFields, Form, FormParser, max_body_bytes, too_large
from meshhub.pipeline.purpose import Purpose
from meshhub.registry import Registry

BODY_TIMEOUT_S = 30.0
"""Seconds without a byte that end an upload; a stalled client would occupy disk space until its deadline. """

_RESERVATION_BYTES = MEGABYTE
"""Bytes of disk per reservation; small uploads reserve little, and large ones check the disk often enough."""


class Reception:
    """Reception of the form of a request; it owns the request's folder, disk space and deadline.

    `async with` admits the request. Folder and disk space last until the response has been sent. A failure in the block
    frees them at once, because draining the rest of the body may take seconds.

    Attributes:
        context: Its context; `context.deadline` is set at admission.
        folder: Folder of the request; unused by a form without files.
        form: The form, as soon as it is complete.
    """

    def __init__(self, request: Request[Any, Any, Any], resources: Resources, main: FileFields) -> None:
        """Receive a form with its files in the fields `main`.

        "any" is for the form of a job, which waits for a worker outside the request; None is for a form without files,
        which only describes them.
        """
        self.request = request
        self.context = context_of(request.scope)
        self.folder = Path()
        self.form = Form()
        self._resources = resources
        self._main = main
        self._limits = caller_of(request).plan.limits

    async def __aenter__(self) -> Self:
        """Admit the request before its body is read.

        Check, in this order: Content-Encoding, Content-Length, queue and disk space. Raises MeshhubError.
        """
        context, resources, timeout_s = self.context, self._resources, self._limits.request_timeout_seconds
        _check_encoding(self.request.headers.get("content-encoding", ""))
        length = self._check_length(self.request.headers.get("content-length"))
        if self._main is not None:
            if resources.is_closing:
                raise shutdown_error()
            if self._main != "any":
                resources.slots.check(context.identity)
            # this reserves no space yet, so an announced body that never arrives does not block other requests
            await resources.disk.reserve(context, 0, required=2 * (length or 0))
        if timeout_s is not None:
            context.deadline = asyncio.get_running_loop().time() + timeout_s
        if self._main is not None:
            self.folder = resources.folders.create(context)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Free folder and disk space after a failure."""
        if error is not None:
            self.context.cleanup.close()

    async def receive(self, registry: Registry) -> Form:
        """Receive the form, with its files in the folder; disk space is reserved as bytes arrive.

        Args:
            registry: Knows the options for which the operator may keep a list.

        Raises ServiceError, InvalidOption, ServerBusy, ShuttingDown, ClientGone.
        """
        parser = FormParser(self.request.headers.get("content-type", ""), self._main, self._limits, self.folder)
        context, resources = self.context, self._resources
        try:
            async with asyncio.timeout_at(context.deadline) as context.receiving:
                resources.receiving.add(context)
                await self._receive_body(parser)
        except TimeoutError:
            if resources.is_closing:
                raise shutdown_error() from None
            if not resources.disk.is_rejected(context):
                raise ServiceError(
                    "the upload took longer than this plan allows for a request; send less at once"
                ) from None
        finally:
            context.receiving = None
            resources.receiving.discard(context)
            parser.close()
        # even if the last bytes have arrived meanwhile, because the other request relies on this space
        if resources.disk.is_rejected(context):
            raise resources.disk.no_space()
        self.form = parser.finish()
        self._fill_inventories(registry)
        return self.form

    def _fill_inventories(self, registry: Registry) -> None:
        """Replace the lists that options name by those that the operator keeps for the caller. Raises InvalidOption."""
        texts = self.form.texts
        if not any(INVENTORY in text for text in texts.values()):
            return
        fields = registry.declarations.fields()
        fill = partial(fill_inventories, self._resources.inventories_folder, self.context.key_id, fields)
        own = {key: fill(options) for key, options in parse_file_options(texts.get(FIELD, "")).items()}
        self.form.texts = fill(texts) | ({FIELD: msgspec.json.encode(own).decode()} if own else {})

    async def receive_conversion(
        self, registry: Registry, purpose: Purpose, complete: CompleteOptions = dict
    ) -> ConversionRequest:
        """Receive the form; check its fields, target, entitlements and options. Raises MeshhubError, ClientGone.

        Args:
            registry: Checks the options.
            purpose: Purpose of the request.
            complete: Adds the options of the operator to those of the form, such as those of a quote.
        """
        await self.receive(registry)
        # `state` imports this module
        paths = self.request.app.state.service.form_paths
        return parse_form(self.form, caller_of(self.request), registry, purpose, complete, paths)

    async def _receive_body(self, parser: FormParser) -> None:
        limit = max_body_bytes(self._main, self._limits)
        received = reserved = 0
        async for chunk in self._chunks():
            received += len(chunk)
            if limit is not None and received > limit:
                raise too_large(self._main, self._limits, f"the request is larger than {limit} bytes")
            if self._main is not None and received > reserved:
                # the stored bytes themselves soon reduce the free space, and the output is about as large
                await self._resources.disk.reserve(self.context, _RESERVATION_BYTES, required=2 * _RESERVATION_BYTES)
                reserved += _RESERVATION_BYTES
            parser.feed(chunk)

    async def _chunks(self) -> AsyncIterator[bytes]:
        while not self.context.is_body_read:
            try:
                async with asyncio.timeout(BODY_TIMEOUT_S):
                    message: Any = await self.request.receive()
            except TimeoutError:
                raise ServiceError(
                    f"no byte of the request's body arrived for {BODY_TIMEOUT_S:g} s; send the request again",
                    error_code="request_timeout",
                ) from None
            if message["type"] == "http.disconnect":
                raise ClientGone
            if message.get("body"):
                yield message["body"]

    def _check_length(self, content_length: str | None) -> int | None:
        """Return the announced length of the body; None without Content-Length. Raises ServiceError."""
        if content_length is None:
            return None
        if not content_length.isascii() or not content_length.isdigit():
            raise ServiceError("Content-Length must be a whole number")
        length = int(content_length[:19])
        limit = max_body_bytes(self._main, self._limits)
        if limit is not None and length > limit:
            raise too_large(self._main, self._limits, f"the request announces {length} bytes")
        return length


def _check_encoding(encoding: str) -> None:
    """Reject a compressed body. Raises ServiceError."""
    if encoding.strip().lower() not in ("", "identity"):
        raise ServiceError(
            f"the body is encoded as {quote(encoding)}; send it without Content-Encoding",
            error_code="unsupported_encoding",
            headers={"Accept-Encoding": "identity"},
        )
