"""Access check before every endpoint: API key, rate limit, entitlements."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from litestar.connection import ASGIConnection
from litestar.handlers import BaseRouteHandler
from msgspec import structs

from meshhub.engine.contract import CALLER
from meshhub.errors import InvalidKey, KeyStoreUnavailable, quote
from meshhub.http.admission.addresses import Counted, count_networks
from meshhub.http.admission.rates import RateState
from meshhub.http.context import Context, context_of
from meshhub.http.errors import ServiceError
from meshhub.http.local_app import OWNER, TOKEN_HEADER
from meshhub.http.state import ServiceState, state_of
from meshhub.model.plans import Caller, Plan
from meshhub.service.keys import KeyRecord, Publishable, id_of
from meshhub.service.sharing import KEY

PUBLIC = {"public": True}
"""Value of `opt` for handlers without API key and rate limit."""

JOBS_WINDOW = {"window": "jobs"}
"""Value of `opt` for handlers that answer questions about jobs; they have a separate rate limit."""

METERED = {"metered": True}
"""Value of `opt` for handlers that use a worker; they count against the daily quota of a publishable key."""

KEY_HEADER = "x-api-key"

_MAX_WARNINGS_COUNT = 1000
"""Maximum number of pairs of keys and listed origins to remember, so that each is logged once."""

log = logging.getLogger("meshhub.http")


async def check_access(connection: ASGIConnection[Any, Any, Any, Any], handler: BaseRouteHandler) -> None:
    """Identify the caller and count the request. Raises InvalidKey, KeyStoreUnavailable, ServiceError."""
    if handler.opt.get("public"):
        return
    state = state_of(connection)
    context = context_of(connection.scope)
    if state.local_app is not None:
        state.local_app.check_token(connection.headers.get(TOKEN_HEADER, ""))
        context.identity, context.caller = OWNER.id, OWNER
        CALLER.set(context.identity)
        return
    keys, origin = connection.headers.getall(KEY_HEADER, []), connection.headers.get("origin", "")
    counted = [Counted(f"ip:{identity}", factor) for identity, factor in count_networks(context.address)]
    if not keys:
        caller = Caller(plan=state.plans[state.settings.free_plan])
        context.identity = counted[0].identity
    else:
        record, key_plan = await _authenticate(state, context, keys)
        if record.publishable is None:
            if origin in state.settings.cors_origins:
                _warn_of_secret_key(record.id, origin)
            caller = Caller(plan=key_plan, id=record.id)
            context.identity = f"{KEY}{record.id}"
            counted = [Counted(context.identity, 1)]
        else:
            caller = _page_caller(record.publishable, key_plan)
            context.publishable = record.publishable
            counted = [Counted(f"{record.id}:{entry.identity}", entry.factor) for entry in counted]
            context.identity = counted[0].identity
    context.caller = caller
    limits = caller.plan.limits
    if handler.opt.get("window") == "jobs":
        counted = [Counted(f"{entry.identity}:jobs", entry.factor) for entry in counted]
        await _count_request(state, context, counted, limits.job_requests_per_minute)
    else:
        await _count_request(state, context, counted, limits.requests_per_minute)
    if context.publishable is not None:
        await _check_page(state, context, context.publishable, origin, is_metered=bool(handler.opt.get("metered")))
    # callers that may be several people share no worker
    CALLER.set("" if context.is_address_shared and not caller.id else context.identity)
    if state.registry.hooks.is_implemented("meshhub_grants"):
        # off the event loop: a plug-in may query other services
        context.caller = await state.resources.threads.run_entitlement(
            context.identity, state.registry.entitled, caller
        )
    else:
        context.caller = state.registry.entitled(caller)


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
            limit=rate.limit,
        )


def _page_caller(publishable: Publishable, plan: Plan) -> Caller:
    """Return the caller with a publishable key.

    It has no id, because everybody can read the key, so it must not give access to jobs, webhooks and further
    entitlements of a customer.
    """
    limits = structs.replace(
        plan.limits, requests_per_minute=publishable.requests_per_minute, job_listing=False, job_webhooks=False
    )
    return Caller(plan=structs.replace(plan, limits=limits))


def daily_identity(key_id: str) -> str:
    """Return the name under which the requests of a publishable key are counted for a day."""
    return f"{KEY}{key_id}:day"


async def _check_page(
    state: ServiceState, context: Context, publishable: Publishable, origin: str, *, is_metered: bool
) -> None:
    """Check the origin of a request with a publishable key, and count it if it is metered. Raises ServiceError."""
    if origin not in publishable.origins:
        sender = f"pages of {quote(origin)}" if origin else "requests without the header Origin"
        raise ServiceError(
            f"{sender} may not use the publishable key {context.key_id}; servers need a secret key",
            error_code="origin_not_allowed",
        )
    if not is_metered:
        return
    rate = await state.rates.hit_daily(daily_identity(context.key_id), publishable.requests_per_day)
    if not rate.passed:
        raise _rate_limited(
            f"the publishable key {context.key_id} allows {rate.limit} conversions in a day; try again later",
            rate,
            daily_limit=rate.limit,
        )


@lru_cache(maxsize=_MAX_WARNINGS_COUNT)
def _warn_of_secret_key(key_id: str, origin: str) -> None:
    """Warn the operator once about a page of a listed origin that sends a secret key.

    Browsers send a key to another origin only if the operator lists the origin of the page in `cors_origins`. It is not
    an error, because an error would break setups that work, such as pages where a customer types a key.
    """
    log.warning("a page of %s sent the secret key %s; give pages a publishable key", origin, key_id)


async def _authenticate(state: ServiceState, context: Context, keys: list[str]) -> tuple[KeyRecord, Plan]:
    """Return the record and the plan of an API key. Raises InvalidKey, KeyStoreUnavailable, ServiceError."""
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
        record = await state.resources.threads.run_lookup(state.keys.check, keys[0])
    except InvalidKey:
        await state.failed_keys.count_invalid(context.address, keys[0])
        raise
    state.failed_keys.remember_valid(keys[0])
    plan = state.plans.get(record.plan)
    if plan is None:
        raise ServiceError(
            f"the API key {record.id} has the plan {record.plan!r}, which this service does not offer; "
            "ask the operator for a new key",
            error_code="invalid_api_key",
        )
    return record, plan


async def is_key_valid(connection: ASGIConnection[Any, Any, Any, Any]) -> bool:
    """Return whether the API key of a request with a long response is still valid; True without a key."""
    key = connection.headers.get(KEY_HEADER)
    if key is None:
        return True
    state = state_of(connection)
    try:
        await state.resources.threads.run_lookup(state.keys.check, key)
    except (InvalidKey, KeyStoreUnavailable):
        return False
    return True


def _rate_limited(message: str, rate: RateState, **values: int) -> ServiceError:
    headers = {"Retry-After": str(rate.resets_in)}
    return ServiceError(message, error_code="rate_limit_exceeded", headers=headers, values=values)
