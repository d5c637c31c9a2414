"""Forms of jobs: that of the endpoint whose work the job does."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from meshhub.http.conversions.check_reports import without_report
from meshhub.http.intake.conversion_requests import ConversionRequest, parse_form
from meshhub.http.intake.uploads import Form, MainField, wrong_field
from meshhub.model.plans import Caller
from meshhub.registry import Registry
from meshhub.service.jobs.job import JobKind

_MAIN_FIELDS: Mapping[JobKind, MainField] = {"inspect": "file", "check": "file", "combine": "files"}
"""Field with the files of a kind; the form of a conversion may have any of them."""


def parse_job_form(
    form: Form, kind: JobKind, caller: Caller, registry: Registry, paths: Mapping[str, str] = MappingProxyType({})
) -> ConversionRequest:
    """Return the request of a job, with all checks that do not depend on the content of its files.

    Args:
        form: The form.
        kind: Kind of the job.
        caller: Sender of the request.
        registry: Checks the options.
        paths: Paths of the endpoints with each main field, for messages.

    Raises:
        ServiceError: A field is missing, or the files are in a field that the kind does not take.
        RequestError, MissingDependency: The target, an entitlement or an option is invalid.
    """
    main = _MAIN_FIELDS.get(kind, form.main)
    if form.files and form.main != main:
        raise wrong_field(form.main, main)
    complete = without_report if kind == "check" else dict
    return parse_form(form, main, caller, registry, "convert" if kind == "combine" else kind, complete, paths)
