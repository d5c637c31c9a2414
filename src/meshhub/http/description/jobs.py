"""Operations of the OpenAPI document with the tag "jobs"."""

from __future__ import annotations

import msgspec

from meshhub.http.conversions.check_reports import MEDIA_TYPES
from meshhub.http.description.forms import FILE_OPTIONS, JOB_REPORT, describe_binary, describe_form, list_check_structs
from meshhub.http.description.parts import (
    CONVERT_CODES,
    EXAMPLES,
    Json,
    describe_files,
    describe_json,
    describe_operation,
    refer_to,
    refer_to_headers,
)
from meshhub.registry import Registry
from meshhub.service.jobs.job import JOB_KINDS


def job_paths(registry: Registry) -> Json:
    """Return the paths with the tag "jobs"."""
    return {
        "/jobs": {"post": _submit_job(registry), "get": _list_jobs()},
        "/jobs/{job_id}": {"get": _show_job(), "delete": _cancel_job()},
        "/jobs/{job_id}/events": {"get": _follow_job()},
        "/jobs/{job_id}/result": {"get": _download_result(registry)},
    }


def _submit_job(registry: Registry) -> Json:
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
    body = describe_form(
        registry, main, [], converts=True, more=JOB_REPORT | FILE_OPTIONS, structs=list_check_structs(registry)
    )
    del (
        body["content"]["multipart/form-data"]["example"]["files"],
        body["content"]["multipart/form-data"]["example"]["archive"],
    )
    codes = (
        *CONVERT_CODES, "too_many_files", "archive_too_large", "plan_required", "idempotency_conflict",
        "too_many_jobs",
    )  # fmt: skip
    response = describe_json("The job, which waits.", refer_to("JobDescription"), EXAMPLES["job"])
    operation = describe_operation("submit_job", "Submit a job", "jobs", response, codes, body, status=202)
    text = "A repetition of the request with the same text returns the same job; 1 to 255 printable ASCII characters."
    schema = {"type": "string", "pattern": "^[ -~]{1,255}$"}
    header = {"name": "Idempotency-Key", "in": "header", "required": False, "description": text, "schema": schema}
    return {**operation, "parameters": [header]}


def _list_jobs() -> Json:
    response = describe_json(
        "Jobs of the API key, the newest first.", refer_to("JobList"), {"jobs": [EXAMPLES["job"]], "next": None}
    )
    operation = describe_operation(
        "list_jobs", "List the jobs of a key", "jobs", response, ("invalid_option", "plan_required", "job_not_found")
    )
    limit = {"type": "integer", "minimum": 1, "maximum": 100}
    before = "Id of a job; only older ones are listed."
    parameters = [
        {"name": "limit", "in": "query", "required": False, "description": "Jobs to list.", "schema": limit},
        {"name": "before", "in": "query", "required": False, "description": before, "schema": {"type": "string"}},
    ]
    return {**operation, "parameters": parameters}


def _show_job() -> Json:
    response = describe_json("The job.", refer_to("JobDescription"), EXAMPLES["job"])
    return _job_operation("show_job", "State of a job", response)


def _follow_job() -> Json:
    event = f"data: {msgspec.json.encode(EXAMPLES['job']).decode()}\n\n"
    response = {
        "description": "Server-sent events until the job has ended: each has the JSON of the job as its data.",
        "content": {"text/event-stream": {"schema": {"type": "string"}, "example": event}},
    }
    return _job_operation("follow_job", "States of a job as they change", response)


def _download_result(registry: Registry) -> Json:
    media_types = {writer.capability.format.media_types[0] for writer in registry.declarations.writers}
    response = describe_files(
        "The converted file, the ZIP, the JSON of an inspection or a check, or its report.",
        {*media_types, "application/zip", *MEDIA_TYPES.values()},
    )
    codes = (
        *CONVERT_CODES, "job_not_finished", "no_result", "worker_lost", "range_not_satisfiable", "archive_too_large",
        "too_many_files",
    )  # fmt: skip
    operation = _job_operation("download_result", "Result of a job", response, codes)
    partial = {**response, "description": "The requested part of the result."}
    operation["responses"]["206"] = {**partial, "headers": refer_to_headers("download_result", "jobs", 206)}
    operation["responses"]["304"] = {
        "description": "The client has the result: its ETag is in If-None-Match.",
        "headers": refer_to_headers("download_result", "jobs", 304),
    }
    return operation


def _cancel_job() -> Json:
    response = describe_json(
        "The job: canceled, or expired if it had ended.", refer_to("JobDescription"), EXAMPLES["job"]
    )
    return _job_operation("cancel_job", "Cancel a job, or delete its result", response)


def _job_operation(name: str, summary: str, response: Json, codes: tuple[str, ...] = ()) -> Json:
    """Return an operation on one job."""
    operation = describe_operation(name, summary, "jobs", response, ("job_not_found", "not_found", *codes))
    schema = {"type": "string", "pattern": "^[A-Za-z0-9_-]{43}$"}
    parameter = {"name": "job_id", "in": "path", "required": True, "description": "Id of the job.", "schema": schema}
    return {**operation, "parameters": [parameter]}
