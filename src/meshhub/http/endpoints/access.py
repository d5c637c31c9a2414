"""Access check before every endpoint: API key, rate limit, entitlements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from litestar.connection import ASGIConnection
from litestar.handlers import BaseRouteHandler

from meshhub.engine.contract import CALLER
from meshhub.errors import InvalidKey, KeyStoreUnavailable, ServerBusy
from meshhub.http.admission.addresses import Counted, count_networks, rate_identity
from meshhub.http.admission.rates import RateState
from meshhub.http.admission.slots import KEY
from meshhub.http.context import Context, context_of
from meshhub.http.errors import ServiceError
from meshhub.http.state import ServiceState, state_of
from meshhub.model.plans import Caller
from meshhub.service.keys import id_of

PUBLIC = {"public": True}
"""Value of `opt` for handlers without API key and rate limit."""

JOBS_WINDOW = {"window": "jobs"}
"""Value of `opt` for handlers that answer questions about jobs; they have a rate limit of their own."""

KEY_HEADER = "x-api-key"


async def check_access(connection: ASGIConnection[Any, Any, Any, Any], handler: BaseRouteHandler) -> None:
    """Identify the caller and count the request. Raises InvalidKey, ServerBusy, ServiceError."""
    if handler.opt.get("public"):
        return
    state = state_of(connection)
    context = context_of(connection.scope)
    keys = connection.headers.getall(KEY_HEADER, [])
    if not keys:
        caller = Caller(plan=state.plans[state.settings.free_plan])
        context.identity = f"ip:{rate_identity(context.address)}"
        counted = [Counted(f"ip:{identity}", factor) for identity, factor in count_networks(context.address)]
    else:
        caller = await _authenticate(state, context, keys)
        context.identity = f"{KEY}{caller.id}"
        counted = [Counted(context.identity, 1)]
    context.caller = caller
    if handler.opt.get("window") == "jobs":
        counted = [Counted(f"{entry.identity}:jobs", entry.factor) for entry in counted]
        await _count_request(state, context, counted, caller.plan.limits.job_requests_per_minute)
    else:
        await _count_request(state, context, counted, caller.plan.limits.requests_per_minute)
    # callers who may be several people share no worker
    CALLER.set("" if context.is_address_shared and not keys else context.identity)
    # off the event loop: a plug-in may query other services
    context.caller = await state.resources.run_entitlement(context.identity, state.registry.entitled, caller)


async def _count_request(
    state: ServiceState, context: Context, counted: Sequence[Counted], per_minute: int | None
) -> None:
    """Count the request. Raises ServiceError if it exceeds the rate limit."""
    if per_minute is None:
        return
    rate = await state.rates.hit_all(counted, per_minute)
    context.headers.update(rate.headers())
    context.remaining, context.resets_in = rate.remaining, rate.resets_in
    if not rate.passed:
        raise _rate_limited(
            f"more than {rate.limit} requests in a minute; try again in {rate.resets_in} s, "
            "or use the key of a plan that allows more",
            rate,
        )


async def _authenticate(state: ServiceState, context: Context, keys: list[str]) -> Caller:
    """Return the caller with this API key. Raises InvalidKey, ServerBusy, ServiceError."""
    context.key_id = id_of(keys[0])
    rejection = await state.failed_keys.check(context.address, keys[0])
    if rejection is not None:
        context.headers.update(rejection.headers())
        raise _rate_limited(
            f"too many invalid API keys from your address; try again in {rejection.resets_in} s", rejection
        )
    try:
        if len(keys) > 1:
            raise InvalidKey(f"X-Api-Key was sent {len(keys)} times; send one key")
        record = await state.resources.run_lookup(state.keys.check, keys[0])
    except KeyStoreUnavailable as error:
        # its message is for the operator: it names files and hosts
        context.reason = error.message
        raise ServerBusy("API keys cannot be checked now; try again in a moment") from None
    except InvalidKey:
        await state.failed_keys.count_invalid(context.address, keys[0])
        raise
    state.failed_keys.remember_valid(keys[0])
    plan = state.plans.get(record.plan)
    if plan is None:
        raise ServiceError(
            f"the API key {record.id} has the plan {record.plan!r}, which this service does not offer; "
            "ask the operator for a new key",
            code="invalid_api_key",
        )
    return Caller(plan=plan, id=record.id)


async def is_key_valid(connection: ASGIConnection[Any, Any, Any, Any]) -> bool:
    """Return whether the API key of a request whose response lasts is still valid; True without a key."""
    key = connection.headers.get(KEY_HEADER)
    if key is None:
        return True
    state = state_of(connection)
    try:
        await state.resources.run_lookup(state.keys.check, key)
    except (InvalidKey, KeyStoreUnavailable):
        return False
    return True


def _rate_limited(message: str, rate: RateState) -> ServiceError:
    return ServiceError(message, code="rate_limit_exceeded", headers={"Retry-After": str(rate.resets_in)})
