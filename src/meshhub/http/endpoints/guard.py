"""What every request passes first: the key, then the rate."""

from __future__ import annotations

from typing import Any

from litestar.connection import ASGIConnection
from litestar.handlers import BaseRouteHandler

from meshhub.engine.hook_process import CALLER
from meshhub.errors import InvalidKey, KeyStoreUnavailable, ServerBusy
from meshhub.http.admission.addresses import rate_identity
from meshhub.http.context import Context, context_of
from meshhub.http.errors import ServiceError
from meshhub.http.state import Shared, shared_of
from meshhub.model.plans import Caller

OPEN = {"open": True}
"""Given as `opt` to handlers that take no key and are not counted."""

KEY_HEADER = "x-api-key"


async def gate(connection: ASGIConnection[Any, Any, Any, Any], handler: BaseRouteHandler) -> None:
    """Find out who is asking and count the request. Raises InvalidKey, ServerBusy, ServiceError."""
    if handler.opt.get("open"):
        return
    shared = shared_of(connection)
    context = context_of(connection.scope)
    keys = connection.headers.getall(KEY_HEADER, [])
    if not keys:
        context.caller = Caller(plan=shared.plans[shared.settings.free_plan])
        context.identity = f"ip:{rate_identity(context.address)}"
    else:
        context.caller = await _customer(shared, context, keys)
        context.identity = f"key:{context.caller.id}"
    await _count(shared, context)
    CALLER.set(context.identity)
    # off the event loop: a plug-in may ask other services
    context.caller = await shared.jobs.entitle(shared.registry.entitled, context.caller)


async def _count(shared: Shared, context: Context) -> None:
    """Count the request. Raises ServiceError when it is one too many."""
    assert context.caller is not None
    per_minute = context.caller.plan.limits.requests_per_minute
    if per_minute is None:
        return
    state = await shared.rates.hit(context.identity, per_minute)
    context.headers.update(state.headers())
    context.remaining, context.resets_in = state.remaining, state.resets_in
    if not state.passed:
        raise ServiceError(
            f"more than {per_minute} requests in a minute; try again in {state.resets_in} s, "
            "or use the key of a plan that allows more",
            code="rate_limit_exceeded",
            headers={"Retry-After": str(state.resets_in)},
        )


async def _customer(shared: Shared, context: Context, keys: list[str]) -> Caller:
    """Whose key it is. Raises InvalidKey, ServerBusy, ServiceError."""
    address = rate_identity(context.address)
    refused = await shared.guesses.refused(address, keys[0])
    if refused is not None:
        context.headers.update(refused.headers())
        raise ServiceError(
            f"too many wrong API keys came from your address; try again in {refused.resets_in} s",
            code="rate_limit_exceeded",
            headers={"Retry-After": str(refused.resets_in)},
        )
    try:
        if len(keys) > 1:
            raise InvalidKey(f"X-Api-Key was sent {len(keys)} times; send one key")
        record = await shared.jobs.look_up(shared.keys.check, keys[0])
    except KeyStoreUnavailable as error:
        # its text is for the operator: it names files and hosts
        context.reason = error.message
        raise ServerBusy("API keys cannot be checked now; try again in a moment") from None
    except InvalidKey:
        await shared.guesses.wrong(address, keys[0])
        raise
    shared.guesses.right(keys[0])
    plan = shared.plans.get(record.plan)
    if plan is None:
        raise ServiceError(
            f"the API key {record.id} is for the plan {record.plan!r}, which this service does not know; "
            "ask for a new one",
            code="invalid_api_key",
        )
    return Caller(plan=plan, id=record.id)
