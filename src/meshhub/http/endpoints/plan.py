"""GET /plan: the caller's plan, its limits, and the use of the rate limit."""

from __future__ import annotations

import msgspec
from litestar import Response, get
from msgspec import structs

from meshhub.http.context import Context, caller_of, context_of
from meshhub.http.description.endpoint import Endpoint
from meshhub.http.description.parts import LANGUAGE_PARAMETERS, Json, describe_json, read_example
from meshhub.http.endpoints.access import daily_identity
from meshhub.http.headers import LANGUAGE
from meshhub.http.intake.inventories import list_inventory_options
from meshhub.http.state import AnyRequest, ServiceState, state_of
from meshhub.model.plans import LOCAL
from meshhub.registry import Registry
from meshhub.service.plan_answer import PlanAnswer, PublishableKey


@get("/plan")
async def plan(request: AnyRequest) -> Response[bytes]:
    """Return the caller's plan, its limits, and the use of the rate limit."""
    context = context_of(request.scope)
    caller_plan = caller_of(request).plan
    state = state_of(request)
    texts = context.texts
    writers = state.registry.declarations.writers
    payload: PlanAnswer = {
        "plan": caller_plan.id,
        "label": texts.plans.get(caller_plan.id, caller_plan.label),
        "limits": structs.replace(caller_plan.limits, max_request_bytes=caller_plan.limits.request_bytes),
        "premium_formats": sorted({writer.capability.format.id for writer in writers if writer.capability.requires}),
        "inventories": list_inventory_options(
            state.resources.inventories_folder, context.key_id, state.registry.declarations.fields().values()
        ),
        "usage": {"requests_remaining": context.remaining, "resets_in_seconds": context.resets_in},
        "publishable_key": await _describe_key(state, context),
    }
    headers = {"Cache-Control": "no-store", "Content-Language": texts.language, "Vary": "X-Api-Key, Accept-Language"}
    return Response(msgspec.json.encode(payload), media_type="application/json", headers=headers)


async def _describe_key(state: ServiceState, context: Context) -> PublishableKey | None:
    bounds = context.publishable
    if bounds is None:
        return None
    usage = await state.rates.peek_daily(daily_identity(context.key_id), bounds.requests_per_day)
    return {
        "origins": bounds.origins,
        "requests_per_day": bounds.requests_per_day,
        "requests_remaining": usage.remaining,
    }


def _describe_answer(registry: Registry) -> Json:
    plan = next(iter(registry.plans.values()), LOCAL.plan)
    own = {"plan": plan.id, "label": plan.label, "limits": structs.asdict(plan.limits)}
    return describe_json("The plan.", PlanAnswer, read_example(__name__) | own)


ENDPOINTS = (
    Endpoint(
        handler=plan,
        summary="The caller's plan, limits and use",
        tag="description",
        answer=_describe_answer,
        types=(PlanAnswer,),
        headers=(LANGUAGE,),
        parameters=LANGUAGE_PARAMETERS,
    ),
)
