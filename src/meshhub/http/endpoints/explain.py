"""POST /explain: explain conversions of files that are described instead of sent."""

from __future__ import annotations

from litestar import Response, post

from meshhub.http.context import caller_of
from meshhub.http.conversions.explanations import Explanation
from meshhub.http.conversions.explanations import explain as explain_files
from meshhub.http.description.endpoint import Endpoint
from meshhub.http.description.forms import FILE_OPTIONS, describe_form
from meshhub.http.description.parts import Json, describe_json, read_example
from meshhub.http.headers import LANGUAGE
from meshhub.http.intake.explanation_requests import SOURCES, parse_explanation
from meshhub.http.intake.reception import Reception
from meshhub.http.state import AnyRequest, state_of
from meshhub.http.translating import answer_json
from meshhub.registry import Registry


@post("/explain", status_code=200, request_max_body_size=None)
async def explain(request: AnyRequest) -> Response[bytes]:
    """Return the chain of each conversion, its possible losses, and what the caller's plan does not allow."""
    state = state_of(request)
    async with Reception(request, state.resources, None) as reception:
        files = parse_explanation(await reception.receive(state.registry))
        # off the event loop, because reviews of plug-ins are called, and in turns of the callers
        explanation = await state.resources.threads.run_entitlement(
            reception.context.identity, explain_files, state.registry, files, caller_of(request)
        )
    return answer_json(request, explanation)


def _describe_form(registry: Registry) -> Json:
    sources = {
        "type": "string",
        "contentMediaType": "application/json",
        "title": "Descriptions of the files",
        "description": "JSON list with the `name` or the `format` of each file, and optionally its `size` in bytes.",
        "minLength": 1,
    }
    return describe_form(registry, {SOURCES: sources}, [SOURCES, "target"], "convert", more=FILE_OPTIONS)


ENDPOINTS = (
    Endpoint(
        handler=explain,
        summary="Explain conversions without running them",
        tag="conversion",
        form=_describe_form,
        answer=lambda _: describe_json("The explanation of each conversion.", Explanation, read_example(__name__)),
        types=(Explanation,),
        headers=(LANGUAGE,),
        codes=(
            "bad_request", "invalid_multipart", "missing_field", "invalid_option", "unsupported_target",
            "file_too_large", "unsupported_encoding", "shutting_down", "origin_not_allowed",
        ),
    ),
)  # fmt: skip
