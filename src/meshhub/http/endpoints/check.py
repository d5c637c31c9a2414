"""POST /check: whether a model prints, what is wrong with it, where, and what to do."""

from __future__ import annotations

import msgspec
from litestar import Response, post

from meshhub.http.conversions.check_reports import MEDIA_TYPES, parse_report, without_report
from meshhub.http.conversions.connected import run_while_connected
from meshhub.http.description.endpoint import Endpoint
from meshhub.http.description.forms import (
    CHECK_REPORT,
    MODEL,
    describe_form,
    list_check_structs,
    list_operation_structs,
)
from meshhub.http.description.parts import BYTES, FORM_CODES, Json, describe_json, read_example
from meshhub.http.endpoints.access import METERED
from meshhub.http.endpoints.single_file import input_file
from meshhub.http.headers import CACHE, DISPOSITION, LANGUAGE
from meshhub.http.intake.reception import Reception
from meshhub.http.responses.results import FileResponse, file_response
from meshhub.http.state import AnyRequest, language_of, state_of
from meshhub.model.verdict import Verdict
from meshhub.registry import Registry


@post("/check", status_code=200, request_max_body_size=None, opt=METERED)
async def check(request: AnyRequest) -> FileResponse:
    """Check one file, after the operations that are requested; answer JSON, or a report as HTML or PDF."""
    state = state_of(request)
    async with Reception(request, state.resources, "model") as reception:
        conversion = await reception.receive_conversion(state.registry, "check", without_report)
        language = state.registry.texts(language_of(request)).language
        report = parse_report(reception.form.texts, language)
        file = input_file(reception.form)
        if report is None:
            verdict = await run_while_connected(
                reception, conversion, lambda execution: state.conversions.examine(execution, file)
            )
            return Response(msgspec.json.encode(verdict), media_type="application/json")
        target = await run_while_connected(
            reception,
            conversion,
            lambda execution: state.conversions.report_check(execution, file, report, reception.folder),
        )
    path = reception.folder / target.name
    return file_response(state.resources.threads, path, report.media_type, report.name_for(file), report.headers)


def _describe_form(registry: Registry) -> Json:
    structs = list_check_structs(registry) + list_operation_structs(registry)
    return describe_form(registry, MODEL, ["file"], converts=False, more=CHECK_REPORT, structs=structs)


def _describe_answer(_: Registry) -> Json:
    response = describe_json("The verdict and its findings.", Verdict, read_example(__name__))
    response["content"] |= {media_type: {"schema": BYTES} for media_type in MEDIA_TYPES.values()}
    return response


ENDPOINTS = (
    Endpoint(
        handler=check,
        summary="Will it print?",
        tag="conversion",
        form=_describe_form,
        answer=_describe_answer,
        types=(Verdict,),
        codes=FORM_CODES,
        headers=(CACHE, DISPOSITION, LANGUAGE),
    ),
)
