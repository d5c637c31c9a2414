"""Forms of jobs: that of the endpoint whose work the job does."""

from __future__ import annotations

from meshhub.http.intake.conversion_requests import ConversionRequest, parse_form
from meshhub.http.intake.uploads import Form, wrong_field
from meshhub.model.plans import Caller
from meshhub.registry import Registry
from meshhub.service.jobs.job import JobKind


def parse_job_form(form: Form, kind: JobKind, caller: Caller, registry: Registry) -> ConversionRequest:
    """Return the request of a job, with all checks that do not depend on the content of its files.

    Raises:
        ServiceError: A field is missing, or the files are in a field that the kind does not take.
        RequestError, MissingDependency: The target, an entitlement or an option is invalid.
    """
    if kind != "convert" and form.main != "file":
        raise wrong_field(form.main, "file")
    return parse_form(form, form.main, caller, registry, kind)
