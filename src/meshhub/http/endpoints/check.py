"""POST /check: whether a model prints, what is wrong with it, where, and what to do."""

from __future__ import annotations

from litestar import post

from meshhub.http.conversions.check_reports import MEDIA_TYPES
from meshhub.http.description.endpoint import Endpoint
from meshhub.http.description.forms import (
    CHECK_REPORT,
    MODEL,
    describe_form,
)
from meshhub.http.description.parts import BYTES, FORM_CODES, Json, describe_json, read_example
from meshhub.http.endpoints.access import METERED
from meshhub.http.endpoints.single_file import run_model
from meshhub.http.headers import CACHE, DISPOSITION, LANGUAGE
from meshhub.http.responses.results import FileResponse, file_response
from meshhub.http.state import AnyRequest, state_of
from meshhub.http.translating import answer_json
from meshhub.model.verdict import Verdict
from meshhub.pipeline.purposes import PURPOSES
from meshhub.registry import Registry


@post("/check", status_code=200, request_max_body_size=None, opt=METERED)
async def check(request: AnyRequest) -> FileResponse:
    """Check one file, after the operations that are requested; answer JSON, or a report as HTML or PDF."""
    done = await run_model(request, PURPOSES["check"])
    if done.report is None:
        return answer_json(request, done.result)
    threads = state_of(request).resources.threads
    name = done.report.name_for(done.file)
    return file_response(threads, done.path, done.report.media_type, name, done.report.headers)


def _describe_answer(_: Registry) -> Json:
    response = describe_json("The verdict and its findings.", Verdict, read_example(__name__))
    response["content"] |= {media_type: {"schema": BYTES} for media_type in MEDIA_TYPES.values()}
    return response


ENDPOINTS = (
    Endpoint(
        handler=check,
        summary="Will it print?",
        tag="conversion",
        form=lambda registry: describe_form(registry, MODEL, ["file"], "check", more=CHECK_REPORT),
        answer=_describe_answer,
        types=(Verdict,),
        codes=FORM_CODES,
        headers=(CACHE, DISPOSITION, LANGUAGE),
    ),
)
