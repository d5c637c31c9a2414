"""Jobs: POST /jobs submits one; the other endpoints follow it, return its result, and cancel it."""

from __future__ import annotations

import functools
import re
from collections.abc import AsyncIterator, Callable
from functools import partial

import msgspec
from litestar import Response, delete, get, post
from litestar.response import Stream

from meshhub.engine.contract import CALLER
from meshhub.errors import InvalidOption, quote
from meshhub.http.context import caller_of, context_of
from meshhub.http.conversions.check_reports import MEDIA_TYPES, parse_report
from meshhub.http.description.endpoint import Endpoint
from meshhub.http.description.forms import (
    FILE_OPTIONS,
    JOB_REPORT,
    describe_binary,
    describe_form,
    list_media_types,
)
from meshhub.http.description.parts import (
    CONVERT_CODES,
    IDEMPOTENCY_PARAMETER,
    Json,
    describe_files,
    describe_json,
    read_example,
)
from meshhub.http.endpoints.access import JOBS_WINDOW, METERED, is_key_valid
from meshhub.http.errors import ServiceError
from meshhub.http.headers import CONVERTED, DISPOSITION, ETAG, FAILED, LANGUAGE, LOCATION, RANGE, REPORT
from meshhub.http.intake.conversion_requests import InputFile, parse_form
from meshhub.http.intake.idempotency import read_idempotency_key
from meshhub.http.intake.names import content_disposition
from meshhub.http.intake.reception import Reception
from meshhub.http.intake.uploads import Form
from meshhub.http.responses.conditions import matches
from meshhub.http.state import AnyRequest, ServiceState, state_of
from meshhub.http.translating import answer_json
from meshhub.model.capabilities import Memory
from meshhub.pipeline.purpose import Purpose
from meshhub.pipeline.purposes import PURPOSES
from meshhub.registry import Registry
from meshhub.service.jobs.description import JobDescription, JobList
from meshhub.service.jobs.job import JOB_KINDS, Job, JobFile, JobKind, JobRequest, NewJob, new_id
from meshhub.service.jobs.weights import MAX_MEMORY_BYTES, estimate_memory

_CHUNK_BYTES = 1 << 20
"""Bytes of a result in memory at a time."""

_MAX_LISTED_COUNT = 100
"""Maximum jobs in one response of the list."""

_MAX_LIMIT_DIGITS = 9
"""Maximum digits of a number of jobs; Python rejects thousands of digits."""

_RANGE = re.compile(r"bytes=(?=\d|-\d)(\d{0,18})-(\d{0,18})", re.ASCII | re.IGNORECASE)


@post("/jobs", status_code=202, request_max_body_size=None, opt=METERED)
async def submit_job(request: AnyRequest) -> Response[bytes]:
    """Submit a job: the form of /convert, /convert-many, /convert-batch, /combine, /inspect or /check."""
    state, caller, context = state_of(request), caller_of(request), context_of(request.scope)
    idempotency_key = read_idempotency_key(request)
    await state.jobs.check_capacity(caller, context.identity, is_repetition=idempotency_key is not None)
    async with Reception(request, state.resources, "any") as reception:
        form = await reception.receive(state.registry)
        kind = _parse_kind(form.texts.pop("kind", ""))
        purpose = PURPOSES[kind]
        webhook_url = form.texts.pop("webhook_url", "").strip() or None
        if webhook_url is not None:
            await _check_webhook(state, request, webhook_url)
        memory = _check_form(state, form, purpose, request)
        files, limits = tuple(JobFile(upload.name, upload.size) for upload in form.files), caller.plan.limits
        memory_bytes = estimate_memory(
            files,
            state.registry.declarations,
            are_combined=purpose.combines,
            memory=memory,
            max_memory_bytes=state.settings.conversion_memory_bytes or MAX_MEMORY_BYTES,
        )
        new = NewJob(
            id=new_id(),
            kind=kind,
            caller=context.identity,
            key_id=caller.id,
            plan=caller.plan.id,
            request=JobRequest(
                field=form.main,
                files=files,
                texts=form.texts,
                language=context.texts.language,
                grants=tuple(sorted(caller.plan.grants)),
                can_share_worker=CALLER.get() == context.identity,
            ),
            weight=limits.job_weight or 1,
            retention_s=limits.job_retention_seconds,
            max_unfinished=limits.max_unfinished_jobs,
            memory_bytes=memory_bytes,
            idempotency_key=idempotency_key,
            webhook_url=webhook_url,
        )
        job = await state.jobs.submit(new, [upload.path for upload in form.files])
    return await _answer(request, job, 202, {"Location": f"{state.settings.root_path}/jobs/{job.id}"})


@get("/jobs", opt=JOBS_WINDOW)
async def list_jobs(request: AnyRequest) -> Response[bytes]:
    """List the jobs of the caller's key, the newest first."""
    state, caller = state_of(request), caller_of(request)
    if not caller.id or caller.plan.limits.job_listing is False:
        raise ServiceError("jobs are listed by API key; keep the id of a job without a key", error_code="plan_required")
    text = request.query_params.get("limit", str(_MAX_LISTED_COUNT))
    limit = int(text) if text.isascii() and text.isdigit() and len(text) <= _MAX_LIMIT_DIGITS else 0
    if not 1 <= limit <= _MAX_LISTED_COUNT:
        raise InvalidOption(f"option 'limit' must be from 1 to {_MAX_LISTED_COUNT}, got {quote(text)}")
    before_id = request.query_params.get("before")
    before = await state.jobs.get(before_id, caller) if before_id else None
    jobs = await state.jobs.list_jobs(caller.id, limit, before)
    described = [await state.jobs.describe(job) for job in jobs]
    return _answer_json(request, JobList(described, jobs[-1].id if len(jobs) == limit else None))


@get("/jobs/{job_id:str}", opt=JOBS_WINDOW)
async def show_job(request: AnyRequest) -> Response[bytes]:
    """Return the state of a job."""
    state = state_of(request)
    return await _answer(request, await _find_job(state, request))


@get("/jobs/{job_id:str}/events", opt=JOBS_WINDOW)
async def follow_job(request: AnyRequest) -> Stream | Response[bytes]:
    """Return the states of a job as server-sent events, until it has ended."""
    state, caller, context = state_of(request), caller_of(request), context_of(request.scope)
    job = await _find_job(state, request)
    # X-Accel-Buffering: nginx would collect the events
    headers = {
        "Cache-Control": "no-store",
        "X-Accel-Buffering": "no",
        "Content-Language": context.texts.language,
        "Vary": "Accept-Language",
    }
    if context.is_head:
        return Response(b"", media_type="text/event-stream", headers=headers)

    events = state.jobs.stream_events(job, caller, context.texts, functools.partial(is_key_valid, request))
    return Stream(events, media_type="text/event-stream", headers=headers)


@get("/jobs/{job_id:str}/result", opt=JOBS_WINDOW)
async def download_result(request: AnyRequest) -> Stream | Response[bytes]:
    """Return the result of a job, or the error that ended it."""
    state, is_head = state_of(request), context_of(request.scope).is_head
    job = await _find_job(state, request)
    result = job.result
    if result is None:
        raise _missing_result(job, state.settings.root_path)
    etag = f'"{result.sha256[:32]}"'
    headers = {
        **result.headers,
        "ETag": etag,
        "Accept-Ranges": "bytes",
        "Cache-Control": "private, no-cache",
        "X-Content-Type-Options": "nosniff",
    }
    if matches(request.headers.get("if-none-match", ""), etag):
        return Response(b"", status_code=304, media_type=result.media_type, headers=headers)
    start, end = 0, result.bytes
    # RFC 9110 §14.2: ranges are for GET
    requested = None if is_head else _RANGE.fullmatch(request.headers.get("range", "").strip())
    is_partial = requested is not None and request.headers.get("if-range", etag) == etag
    if requested is not None and is_partial:
        start, end = _select_range(requested, result.bytes)
        headers["Content-Range"] = f"bytes {start}-{end - 1}/{result.bytes}"
    await state.jobs.check_files()
    try:
        # for HEAD, the first byte suffices to check that the file exists
        first = await state.jobs.read_result(job, start, 1 if is_head else min(_CHUNK_BYTES, end - start))
    except FileNotFoundError:
        raise ServiceError("the result of this job was deleted; submit it again", error_code="no_result") from None
    headers |= {"Content-Disposition": content_disposition(result.name), "Content-Length": str(end - start)}
    return Stream(
        _stream_result(state, job, first, start, start + len(first) if is_head else end),
        media_type=result.media_type,
        status_code=206 if is_partial else 200,
        headers=headers,
    )


@delete("/jobs/{job_id:str}", status_code=200, opt=JOBS_WINDOW)
async def cancel_job(request: AnyRequest) -> Response[bytes]:
    """Cancel a job, or delete the result of a finished one."""
    state = state_of(request)
    job = await _find_job(state, request)
    return await _answer(request, await state.jobs.cancel(job))


async def _find_job(state: ServiceState, request: AnyRequest) -> Job:
    """Return the job of the path. Raises ServiceError."""
    return await state.jobs.get(request.path_params["job_id"], caller_of(request))


def _parse_kind(text: str) -> JobKind:
    kind = text.strip().lower() or "convert"
    if kind not in JOB_KINDS:
        raise InvalidOption(f"option 'kind' must be one of {', '.join(JOB_KINDS)}, got {quote(kind)}")
    return kind


def _check_form(state: ServiceState, form: Form, purpose: Purpose, request: AnyRequest) -> Memory:
    """Check a form before the job is queued, so that its errors reach the caller at once. Raises MeshhubError.

    Returns:
        Memory of the job beyond that of a conversion.
    """
    conversion = parse_form(form, caller_of(request), state.registry, purpose, paths=state.form_paths)
    requests = [conversion.request]
    if form.main == "files":
        files = () if purpose.combines else enumerate(form.files)
        sent = {str(number): InputFile(file.name, "", file.name, file.path) for number, file in files}
        requests += [file.request for file in conversion.assign_options(sent, state.registry) if file.request]
    memory = Memory().including(each.memory for each in requests)
    if purpose.report_field == "format":
        parse_report(form.texts, context_of(request.scope).texts.language)
    return memory


async def _check_webhook(state: ServiceState, request: AnyRequest, url: str) -> None:
    """Check that the caller may have webhooks sent to an address. Raises MeshhubError."""
    caller = caller_of(request)
    if not caller.id or caller.plan.limits.job_webhooks is False:
        raise ServiceError("webhooks need the API key of a plan that includes them", error_code="plan_required")
    await state.jobs.webhooks.check(caller.id, url)


def _missing_result(job: Job, root_path: str) -> ServiceError:
    """Return the error for a job without a result."""
    if not job.is_finished:
        return ServiceError(
            f"the job is {job.state}; ask again in a moment, or follow {root_path}/jobs/{job.id}/events",
            error_code="job_not_finished",
        )
    if job.state == "failed" and job.outcome is not None:
        outcome = job.outcome
        return ServiceError(
            outcome.error, error_code=outcome.error_code, details=outcome.details, values=outcome.error_values
        )
    return ServiceError(f"the job is {job.state} and has no result; submit it again", error_code="no_result")


def _select_range(requested: re.Match[str], size: int) -> tuple[int, int]:
    """Return the start and the end of a range (RFC 9110 §14.1.2). Raises ServiceError."""
    first, last = requested.groups()
    start = int(first) if first else max(0, size - int(last))
    end = min(int(last) + 1, size) if first and last else size
    if start < end:
        return start, end
    raise ServiceError(
        f"the result has {size} bytes, and Range asks for {quote(requested[0])}; ask for one range inside it",
        error_code="range_not_satisfiable",
        headers={"Content-Range": f"bytes */{size}"},
    )


async def _stream_result(state: ServiceState, job: Job, first: bytes, start: int, end: int) -> AsyncIterator[bytes]:
    yield first
    for position in range(start + len(first), end, _CHUNK_BYTES):
        yield await state.jobs.read_result(job, position, min(_CHUNK_BYTES, end - position))


async def _answer(
    request: AnyRequest, job: Job, status: int = 200, headers: dict[str, str] | None = None
) -> Response[bytes]:
    return _answer_json(request, await state_of(request).jobs.describe(job), status, headers)


def _answer_json(
    request: AnyRequest, payload: object, status: int = 200, headers: dict[str, str] | None = None
) -> Response[bytes]:
    return answer_json(request, payload, status, {"Cache-Control": "no-store", **(headers or {})})


def _describe_form(registry: Registry) -> Json:
    files = {"type": "array", "items": describe_binary("A model"), "minItems": 1, "title": "The models"}
    main: Json = {
        "kind": {
            "type": "string",
            "enum": list(JOB_KINDS),
            "title": "Kind",
            "description": "What to do; the other fields are those of the endpoint of this name. Default: convert.",
        },
        "file": describe_binary("The model"),
        "files": {
            **files,
            "description": "Several models instead of `file`: for one ZIP, or for one file (kind `combine`).",
        },
        "archive": describe_binary("A ZIP of models instead of `file`, for one ZIP."),
        "webhook_url": {
            "type": "string",
            "title": "Webhook",
            "description": "URL that gets a signed message at the end of the job (Standard Webhooks); needs a key.",
        },
    }
    form = describe_form(registry, main, [], "convert", "check", more=JOB_REPORT | FILE_OPTIONS)
    example = form["content"]["multipart/form-data"]["example"]
    del example["files"], example["archive"]
    return form


def _describe_job(description: str) -> Callable[[Registry], Json]:
    return lambda _: describe_json(description, JobDescription, read_example(__name__))


def _describe_result(registry: Registry, description: str) -> Json:
    return describe_files(description, {*list_media_types(registry), "application/zip", *MEDIA_TYPES.values()})


_JOB_ID: Json = {
    "name": "job_id",
    "in": "path",
    "required": True,
    "description": "Id of the job.",
    "schema": {"type": "string", "pattern": "^[A-Za-z0-9_-]{43}$"},
}

_JOB_CODES = ("job_not_found", "not_found")

_endpoint = partial(Endpoint, tag="jobs", codes=_JOB_CODES, headers=(LANGUAGE,), parameters=(_JOB_ID,))

_SUBMIT_JOB = Endpoint(
    handler=submit_job,
    summary="Submit a job",
    tag="jobs",
    form=_describe_form,
    answer=_describe_job("The job, which waits."),
    types=(JobDescription,),
    codes=(
        *CONVERT_CODES, "too_many_files", "archive_too_large", "plan_required", "idempotency_conflict",
        "too_many_jobs",
    ),
    headers=(LOCATION, LANGUAGE),
    parameters=(IDEMPOTENCY_PARAMETER,),
)  # fmt: skip

_LIST_JOBS = Endpoint(
    handler=list_jobs,
    summary="List the jobs of a key",
    tag="jobs",
    answer=lambda _: describe_json(
        "Jobs of the API key, the newest first.", JobList, {"jobs": [read_example(__name__)], "next": None}
    ),
    types=(JobList,),
    codes=("invalid_option", "plan_required", "job_not_found"),
    headers=(LANGUAGE,),
    parameters=(
        {
            "name": "limit",
            "in": "query",
            "required": False,
            "description": "Jobs to list.",
            "schema": {"type": "integer", "minimum": 1, "maximum": _MAX_LISTED_COUNT},
        },
        {
            "name": "before",
            "in": "query",
            "required": False,
            "description": "Id of a job; only older ones are listed.",
            "schema": {"type": "string"},
        },
    ),
)

_SHOW_JOB = _endpoint(
    handler=show_job,
    summary="State of a job",
    answer=_describe_job("The job."),
    types=(JobDescription,),
)

_CANCEL_JOB = _endpoint(
    handler=cancel_job,
    summary="Cancel a job, or delete its result",
    answer=_describe_job("The job: canceled, or expired if it had ended."),
    types=(JobDescription,),
)

_FOLLOW_JOB = _endpoint(
    handler=follow_job,
    summary="States of a job as they change",
    answer=lambda _: {
        "description": "Server-sent events until the job has ended: each has the JSON of the job as its data.",
        "content": {
            "text/event-stream": {
                "schema": {"type": "string"},
                "example": f"data: {msgspec.json.encode(read_example(__name__)).decode()}\n\n",
            }
        },
    },
)

_DOWNLOAD_RESULT = Endpoint(
    handler=download_result,
    summary="Result of a job",
    tag="jobs",
    answer=lambda registry: _describe_result(
        registry, "The converted file, the ZIP, the JSON of an inspection or a check, or its report."
    ),
    others={
        206: lambda registry: _describe_result(registry, "The requested part of the result."),
        304: lambda _: {"description": "The client has the result: its ETag is in If-None-Match."},
    },
    codes=(
        *_JOB_CODES, *CONVERT_CODES, "job_not_finished", "no_result", "worker_lost", "range_not_satisfiable",
        "archive_too_large", "too_many_files",
    ),
    headers=(REPORT, CONVERTED, FAILED, DISPOSITION, ETAG, LANGUAGE, RANGE),
    parameters=(_JOB_ID,),
)  # fmt: skip

ENDPOINTS = (_SUBMIT_JOB, _LIST_JOBS, _SHOW_JOB, _CANCEL_JOB, _FOLLOW_JOB, _DOWNLOAD_RESULT)
