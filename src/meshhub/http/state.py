"""State that all requests of a service share, and the reception of a request's form."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from litestar import Request

from meshhub.engine.contract import Cancel
from meshhub.http.admission.addresses import Trusted
from meshhub.http.admission.failed_keys import FailedKeys
from meshhub.http.admission.published_origins import PublishedOrigins
from meshhub.http.admission.rates import RateLimits
from meshhub.http.admission.resources import Resources
from meshhub.http.admission.slots import Ticket
from meshhub.http.context import Context, context_of
from meshhub.http.conversions.probe import Probe
from meshhub.http.conversions.runner import Conversions, Execution
from meshhub.http.errors import ServiceError
from meshhub.http.intake.conversion_requests import ConversionRequest, Purpose, parse_form
from meshhub.http.intake.uploads import (
    AnyField,
    Form,
    MainField,
    UploadRules,
    check_encoding,
    check_length,
    receive_form,
)
from meshhub.http.jobs.service import Jobs
from meshhub.http.metrics import Metrics
from meshhub.http.responses.page_files import PageFile
from meshhub.model.plans import Caller, Limits, Plan
from meshhub.registry import Registry
from meshhub.service.keys import KeyStore
from meshhub.service.settings import Settings

AnyRequest = Request[Any, Any, Any]


@dataclass(frozen=True)
class ServiceState:
    """Components of a running service; `plans` have the limits of the settings."""

    settings: Settings
    registry: Registry
    keys: KeyStore
    resources: Resources
    rates: RateLimits
    failed_keys: FailedKeys
    published_origins: PublishedOrigins
    conversions: Conversions
    jobs: Jobs
    probe: Probe
    metrics: Metrics
    plans: Mapping[str, Plan]
    trusted: Sequence[Trusted]
    schema_document: bytes
    schema_page: bytes
    page_files: Mapping[str, PageFile]


def state_of(connection: Any) -> ServiceState:
    """Return the state of the service that received this connection."""
    return cast(ServiceState, connection.app.state.service)


def caller_of(connection: Any) -> Caller:
    """Return the caller, as `check_access` determined it."""
    caller = context_of(connection.scope).caller
    if caller is None:
        raise ServiceError("the request was not authenticated", code="internal_error")
    return caller


def language_of(request: AnyRequest) -> str:
    """Return the language that a request names in its query, or its languages in the order of preference."""
    return str(request.query_params.get("language") or request.headers.get("accept-language", ""))


@dataclass(frozen=True)
class ReceivedRequest:
    """Complete form of a request, with its folder, ticket and deadline (event loop's clock; None: no deadline)."""

    form: Form
    conversion: ConversionRequest
    folder: Path
    ticket: Ticket
    deadline: float | None
    context: Context

    def execution(self, cancel: Cancel) -> Execution:
        """Return the state that the conversions of this request share."""
        return Execution(self.conversion, self.ticket, self.deadline, cancel)


async def receive_texts(request: AnyRequest) -> Form:
    """Receive a form without files; a file in it is only listed. Raises MeshhubError, ClientGone."""
    check_encoding(request.headers.get("content-encoding", ""))
    context, limits = context_of(request.scope), caller_of(request).plan.limits
    check_length(request.headers.get("content-length"), None, limits)
    rules = UploadRules(None, limits, _set_deadline(context, limits))
    # nothing is stored in the folder
    return await receive_form(request, context, rules, Path(), state_of(request).resources)


def _set_deadline(context: Context, limits: Limits) -> float | None:
    """Start the time of the whole request; return its end in the event loop's clock, None without a limit."""
    if limits.request_timeout_seconds is not None:
        context.deadline = asyncio.get_running_loop().time() + limits.request_timeout_seconds
    return context.deadline


async def receive_request(request: AnyRequest, main: MainField, purpose: Purpose = "convert") -> ReceivedRequest:
    """Receive the form of a request.

    Check, in this order: Content-Encoding, Content-Length, queue and disk space, multipart framing, fields, target,
    entitlements and options.

    Raises MeshhubError, ClientGone.
    """
    form, folder = await receive_upload(request, main)
    context = context_of(request.scope)
    conversion = parse_form(form, main, caller_of(request), state_of(request).registry, purpose)
    return ReceivedRequest(form, conversion, folder, Ticket(context.identity), context.deadline, context)


async def receive_upload(request: AnyRequest, main: MainField | AnyField) -> tuple[Form, Path]:
    """Receive the form of a request, with its files in a folder that is removed when the request ends.

    A form with any main field is that of a job, which waits elsewhere for a worker. Raises MeshhubError, ClientGone.
    """
    check_encoding(request.headers.get("content-encoding", ""))
    state = state_of(request)
    context = context_of(request.scope)
    caller = caller_of(request)
    limits = caller.plan.limits
    length = check_length(request.headers.get("content-length"), main, limits)
    await state.resources.admit(context, length, is_job=main == "any")
    deadline = _set_deadline(context, limits)
    folder = state.resources.create_folder(context)
    try:
        form = await receive_form(request, context, UploadRules(main, limits, deadline), folder, state.resources)
    except BaseException:
        # free the disk now: draining the rest of the body may take seconds
        context.cleanup.close()
        raise
    return form, folder
