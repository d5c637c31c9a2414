"""GET /printers and POST /printers: printers on the network, and files that are sent to them."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TypedDict

from litestar import Response, get, post

from meshhub.errors import OutputExists, quote
from meshhub.http.context import caller_of, context_of
from meshhub.http.description.endpoint import Endpoint
from meshhub.http.description.forms import describe_binary
from meshhub.http.description.parts import FORM_CODES, IDEMPOTENCY_PARAMETER, Json, describe_json, read_example
from meshhub.http.errors import ServiceError
from meshhub.http.headers import LANGUAGE
from meshhub.http.intake.idempotency import read_idempotency_key
from meshhub.http.intake.names import label
from meshhub.http.intake.reception import Reception
from meshhub.http.sending import FileToSend
from meshhub.http.state import AnyRequest, state_of
from meshhub.http.translating import answer_json
from meshhub.model.capabilities import NetworkPrinter
from meshhub.pipeline.network_printers import address_file, find_storages

_FLAGS = {"true": True, "false": False}


class PrinterList(TypedDict):
    """Printers that the caller may use."""

    printers: list[NetworkPrinter]
    """Printers with their states."""


class SentFile(TypedDict):
    """File on a printer."""

    name: str
    """Name of the file."""

    is_started: bool
    """Whether its print has started."""


@get("/printers")
async def list_printers(request: AnyRequest) -> Response[bytes]:
    """Return the printers that the operator has set and that the caller may use, with their states."""
    state = state_of(request)
    try:
        printers = await state.resources.threads.run_printer(state.registry.printers, caller_of(request))
    except OSError as error:
        # unlike errors of sent files, it names no file of the caller
        context_of(request.scope).reason = error.strerror or str(error)
        raise _explain(error) from error
    return answer_json(request, {"printers": printers}, headers={"Cache-Control": "no-store"})


@post("/printers", status_code=200, request_max_body_size=None)
async def send_file(request: AnyRequest) -> Response[bytes]:
    """Send a file to a printer; a request with the same Idempotency-Key sends it once."""
    state, caller, context = state_of(request), caller_of(request), context_of(request.scope)
    threads, storages = state.resources.threads, state.registry.declarations.storages
    key = read_idempotency_key(request)
    if not find_storages(storages, caller):
        raise ServiceError(
            "this plan includes no printers, or the service has none; download the file", error_code="plan_required"
        )
    async with Reception(request, state.resources, "file") as reception:
        form = await reception.receive(state.registry)
        texts = dict(form.texts)
        printer = texts.pop("printer", "")
        start, replace = (_read_flag(texts, name) for name in ("start", "replace"))
        if texts:
            raise ServiceError(
                f"the form has no field {quote(next(iter(texts)))}; send file, printer, start and replace"
            )
        name, path = label(form.files[0].name), form.files[0].path
        address = address_file(storages, caller, printer, name, start=start)
        file = FileToSend(address, await threads.run(_digest, path), replace)

        async def send() -> None:
            await threads.run_printer(state.registry.send, path, address, overwrite=replace)

        try:
            await state.sent_files.send(context.identity, key, printer, file, send)
        except OutputExists as error:
            message = f"{error.message}; set replace=true, or name the file otherwise"
            raise ServiceError(message, error_code=error.error_code) from error
        except OSError as error:
            raise _explain(error) from error
    return answer_json(request, SentFile(name=name, is_started=start))


def _read_flag(texts: dict[str, str], name: str) -> bool:
    text = texts.pop(name, "false").strip().lower() or "false"
    if text not in _FLAGS:
        raise ServiceError(f"{name} must be true or false, got {quote(text)}", error_code="invalid_option")
    return _FLAGS[text]


def _digest(path: Path) -> bytes:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()


def _explain(error: OSError) -> ServiceError:
    """Return the error of a printer as an answer; storages write its text for callers."""
    return ServiceError(error.strerror or "the printer does not respond; try again", error_code="output_failed")


_FORM: Json = {
    "required": True,
    "content": {
        "multipart/form-data": {
            "schema": {
                "type": "object",
                "properties": {
                    "file": describe_binary("The file, such as G-code"),
                    "printer": {
                        "type": "string",
                        "title": "Printer",
                        "description": "Address of the printer, as GET /printers lists it.",
                        "examples": ["moonraker://voron"],
                    },
                    "start": {
                        "type": "boolean",
                        "title": "Start the print",
                        "description": "Print the file as soon as it is on the printer, which must be idle. "
                        "Default: false.",
                    },
                    "replace": {
                        "type": "boolean",
                        "title": "Replace",
                        "description": "Replace a file of the same name on the printer. Default: false.",
                    },
                },
                "required": ["file", "printer"],
                "additionalProperties": False,
            },
            "example": {"file": "bracket.gcode", "printer": "moonraker://voron"},
        }
    },
}

ENDPOINTS = (
    Endpoint(
        handler=list_printers,
        summary="The printers on the network",
        tag="description",
        answer=lambda _: describe_json("The printers.", PrinterList, read_example(__name__)),
        types=(PrinterList,),
        codes=("output_failed",),
        headers=(LANGUAGE,),
    ),
    Endpoint(
        handler=send_file,
        summary="Send a file to a printer",
        tag="conversion",
        form=lambda _: _FORM,
        answer=lambda _: describe_json(
            "The file is on the printer.", SentFile, {"name": "a.gcode", "is_started": True}
        ),
        types=(SentFile,),
        codes=(*FORM_CODES, "plan_required", "idempotency_conflict", "output_exists", "output_failed"),
        headers=(LANGUAGE,),
        parameters=(IDEMPOTENCY_PARAMETER,),
    ),
)
