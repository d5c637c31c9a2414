"""State that all requests of a service share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from litestar import Request

from meshhub.http.admission.addresses import Trusted
from meshhub.http.admission.failed_keys import FailedKeys
from meshhub.http.admission.published_origins import PublishedOrigins
from meshhub.http.admission.rates import RateLimits
from meshhub.http.admission.resources import Resources
from meshhub.http.conversions.probe import Probe
from meshhub.http.conversions.result_cache import ResultCache
from meshhub.http.conversions.runner import Conversions
from meshhub.http.jobs.service import Jobs
from meshhub.http.local_app import LocalApp
from meshhub.http.metrics import Metrics
from meshhub.http.responses.page_files import PageFile
from meshhub.http.sending import SentFiles
from meshhub.model.plans import Plan
from meshhub.pipeline.rates import RateCard
from meshhub.registry import Registry
from meshhub.service.keys import KeyStore
from meshhub.service.settings import Settings

AnyRequest = Request[Any, Any, Any]


@dataclass(frozen=True)
class ServiceState:
    """Components of a running service; `plans` have the limits of the settings.

    `form_paths` has the paths of the endpoints with each main field, for messages. `local_app` is the state of `meshhub
    app`; None for a service.
    """

    settings: Settings
    registry: Registry
    keys: KeyStore
    resources: Resources
    rates: RateLimits
    failed_keys: FailedKeys
    published_origins: PublishedOrigins
    conversions: Conversions
    cache: ResultCache | None
    jobs: Jobs
    sent_files: SentFiles
    probe: Probe
    metrics: Metrics
    plans: Mapping[str, Plan]
    rate_card: RateCard | None
    trusted: Sequence[Trusted]
    form_paths: Mapping[str, str]
    schema_document: bytes
    schema_page: bytes
    page_files: Mapping[str, PageFile]
    local_app: LocalApp | None


def state_of(connection: Any) -> ServiceState:
    """Return the state of the service that received this connection."""
    return cast(ServiceState, connection.app.state.service)
