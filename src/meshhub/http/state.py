"""What all requests share, and how a handler gets at it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from litestar import Request

from meshhub.http.admission.addresses import Network
from meshhub.http.admission.failed_keys import Guesses
from meshhub.http.admission.rates import RateLimits
from meshhub.http.admission.resources import Jobs
from meshhub.http.admission.slots import Ticket
from meshhub.http.context import Context, context_of
from meshhub.http.conversions.probe import Probe
from meshhub.http.conversions.runner import Conversions
from meshhub.http.errors import ServiceError
from meshhub.http.intake.conversion_requests import Order, order_from
from meshhub.http.intake.uploads import Form, MainField, check_encoding, check_length, receive_form
from meshhub.http.metrics import Metrics
from meshhub.model.plans import Caller, Plan
from meshhub.registry import Registry
from meshhub.service.keys import KeyStore
from meshhub.service.settings import Settings

AnyRequest = Request[Any, Any, Any]


@dataclass(frozen=True)
class Shared:
    """The parts of a running service; `plans` have the limits in force."""

    settings: Settings
    registry: Registry
    keys: KeyStore
    jobs: Jobs
    rates: RateLimits
    guesses: Guesses
    conversions: Conversions
    probe: Probe
    metrics: Metrics
    plans: Mapping[str, Plan]
    trusted: Sequence[Network]
    schema_document: bytes
    schema_page: bytes


def shared_of(connection: Any) -> Shared:
    """The parts of the service that a request came to."""
    return cast(Shared, connection.app.state.shared)


def caller_of(connection: Any) -> Caller:
    """Who is asking, as the gate found out."""
    caller = context_of(connection.scope).caller
    if caller is None:
        raise ServiceError("the request did not pass the gate", code="internal_error")
    return caller


@dataclass(frozen=True)
class Taken:
    """A form that came in whole, what it asks for, and the folder, the ticket and the time that it has."""

    form: Form
    order: Order
    folder: Path
    ticket: Ticket
    deadline: float | None
    context: Context


async def take(request: AnyRequest, main: MainField, *, converts: bool = True) -> Taken:
    """Receive a request's form: Content-Encoding, Content-Length, room, multipart, fields, in this order.

    Raises MeshhubError, ClientGone.
    """
    check_encoding(request.headers.get("content-encoding", ""))
    shared = shared_of(request)
    context = context_of(request.scope)
    caller = caller_of(request)
    limits = caller.plan.limits
    length = check_length(request.headers.get("content-length"), main, limits)
    await shared.jobs.admit(context, length)
    deadline = None
    if limits.request_timeout_seconds is not None:
        deadline = asyncio.get_running_loop().time() + limits.request_timeout_seconds
        context.deadline = deadline
    folder = shared.jobs.folder(context)
    try:
        form = await receive_form(request, context, main, limits, folder, deadline, shared.jobs)
    except BaseException:
        # others need the disk now; what is left of the body may take seconds to read
        context.cleanup.close()
        raise
    order = order_from(form, main, caller, converts=converts)
    return Taken(form, order, folder, Ticket(context.identity), deadline, context)
