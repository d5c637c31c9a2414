"""The ASGI application: its components, endpoints and shutdown."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import cast

import msgspec
from litestar.exceptions import HTTPException

from meshhub.engine.contract import Engine
from meshhub.engine.isolated import Isolated, WorkerSharing
from meshhub.engine.limits import Limits as WorkerLimits
from meshhub.errors import InvalidSettings, MeshhubError
from meshhub.http.admission.addresses import networks
from meshhub.http.admission.failed_keys import FailedKeys
from meshhub.http.admission.published_origins import PublishedOrigins
from meshhub.http.admission.rates import RateLimits
from meshhub.http.admission.resources import Resources
from meshhub.http.conversions.probe import Probe
from meshhub.http.conversions.result_cache import measure_cache, open_cache
from meshhub.http.conversions.runner import Conversions
from meshhub.http.description.page_assets import PAGE, load_assets
from meshhub.http.endpoints import ENDPOINTS, local
from meshhub.http.endpoints.access import check_access
from meshhub.http.endpoints.page import page_handler
from meshhub.http.errors import answer_error
from meshhub.http.jobs.destinations import Destinations
from meshhub.http.jobs.execution import JobConversions
from meshhub.http.jobs.live import LiveJobs
from meshhub.http.jobs.runner import JobRunner, Runner
from meshhub.http.jobs.runs import JobRuns
from meshhub.http.jobs.service import Jobs
from meshhub.http.jobs.sweeping import Sweeper
from meshhub.http.jobs.webhooks import Webhooks
from meshhub.http.local_app import OWNER, LocalApp
from meshhub.http.metrics import Metrics
from meshhub.http.openapi import document, list_form_paths
from meshhub.http.responses import page_files
from meshhub.http.responses.page_files import PageFile, load_page, page_headers
from meshhub.http.sending import SentFiles
from meshhub.http.server.middleware import MeshhubApp
from meshhub.http.state import ServiceState
from meshhub.model.chain import Request
from meshhub.model.plans import Plan
from meshhub.pipeline.hooks import HOOK_S, SNIFF_S, Hooks
from meshhub.pipeline.rate_files import read_rates
from meshhub.pipeline.rates import RateCard
from meshhub.registry import Registry
from meshhub.service.jobs.opening import open_files, open_store
from meshhub.service.jobs.store import ClusterStore
from meshhub.service.keys import KeyStore
from meshhub.service.settings import Settings
from meshhub.service.webhook_secrets import WebhookSecrets

_CPU_S = 3600
"""Maximum processor seconds of a conversion; more than a job needs that runs for 15 minutes on several threads."""


def create_engine(settings: Settings) -> Isolated:
    """Return the engine that the settings describe: a process for every conversion.

    The service itself limits the number of conversions, so the engine accepts all of them, including the probe.
    """
    return Isolated(
        workers=settings.most_at_once + 1,
        queue=settings.queue,
        limits=WorkerLimits(memory_bytes=settings.memory_bytes, cpu_seconds=_CPU_S),
        folder=settings.temporary_folder,
        log=settings.log,
        sharing=WorkerSharing(tasks=settings.conversions_per_worker, callers=settings.worker_sharing),
    )


def create_hooks() -> Hooks:
    """Return the limits of the hooks of installed plug-ins; callers do not see the texts of their exceptions."""
    return Hooks(sniff_s=SNIFF_S, hook_s=HOOK_S, has_details=False)


def create_app(
    settings: Settings | None = None,
    registry: Registry | None = None,
    keys: KeyStore | None = None,
    engine: Engine | None = None,
    local_app: LocalApp | None = None,
) -> MeshhubApp:
    """Create the service as an ASGI application. Run it in one process, because it keeps limits and the queue in
    memory.

    Args:
        settings: Default: from the environment.
        registry: Default: built-in and installed plug-ins, with time limits for hooks. A registry that is passed
            converts on its own engine, and has its own limits (default: none).
        keys: Default: the store that the settings name.
        engine: Engine of the default registry. Default: a process for every conversion.
        local_app: State of `meshhub app`, whose token every request needs. Default: a service for callers with plans.
    Returns:
        Application; its shutdown closes the components that this function creates.
    Raises:
        InvalidSettings: A setting has an invalid value.
    """
    settings = settings or Settings.from_environment()
    if registry is not None and engine is not None:
        raise ValueError("pass the engine to the registry: Registry(engine=…)")
    owns_registry, owns_keys = registry is None, keys is None
    registry = registry or Registry(
        engine=engine or create_engine(settings),
        hooks=create_hooks(),
        disabled=settings.disabled_plugins,
    )
    state = _create_state(settings, registry, keys, local_app)

    async def close() -> None:
        state.resources.stop()
        await state.jobs.close()
        if state.cache is not None:
            await state.cache.close()
        await state.rates.close()
        if owns_registry:
            state.registry.close()
        state.resources.close()
        if owns_keys:
            state.keys.close()

    def start_cache() -> None:
        if state.cache is not None:
            state.cache.start(state.resources.threads)

    app = MeshhubApp(
        route_handlers=[
            *(endpoint.handler for endpoint in ENDPOINTS),
            *(local.HANDLERS if local_app is not None else ()),
            page_handler(state.page_files),
        ],
        guards=[check_access],
        exception_handlers={HTTPException: answer_error, Exception: answer_error},
        on_startup=[state.jobs.resume, start_cache],
        on_shutdown=[close],
        # openapi.py creates the document, because the framework cannot see the options of plug-ins
        openapi_config=None,
        logging_config=None,
        debug=False,
    )
    app.state.service = state
    return app


def _create_state(
    settings: Settings, registry: Registry, keys: KeyStore | None, local_app: LocalApp | None
) -> ServiceState:
    folder = settings.inventories_folder
    if folder is not None and not Path(folder).is_dir():
        raise InvalidSettings(f"inventories_folder: {folder!r} is not a folder")
    plans = settings.in_force(registry.plans)
    if local_app is not None:
        plans[OWNER.plan.id] = OWNER.plan
    try:
        keys = keys or KeyStore(settings.database_url)
    except ValueError as error:
        raise InvalidSettings(f"database_url: {error}") from error
    try:
        rates = RateLimits(settings.rate_limit_url)
    except ValueError as error:
        raise InvalidSettings(str(error)) from error
    resources = Resources(settings)
    schema = document(registry, settings.base_url or settings.root_path or "/")
    cache = open_cache(settings)
    service_metrics = Metrics(registry, resources, frozenset(schema["paths"]), measure_cache(cache))
    conversions = Conversions(registry, resources, service_metrics, settings.batch_worker_count, cache)
    return ServiceState(
        settings=settings,
        registry=registry,
        keys=keys,
        resources=resources,
        rates=rates,
        failed_keys=FailedKeys(rates, plans[settings.free_plan].limits.requests_per_minute),
        published_origins=PublishedOrigins(keys, resources.threads),
        conversions=conversions,
        cache=cache,
        jobs=_create_jobs(settings, registry, resources, conversions, plans, WebhookSecrets(keys), service_metrics),
        sent_files=SentFiles(),
        probe=Probe(registry, resources),
        metrics=service_metrics,
        plans=plans,
        rate_card=_load_rate_card(settings, registry),
        trusted=networks(settings.trusted_proxies),
        form_paths=list_form_paths(schema),
        schema_document=msgspec.json.encode(schema),
        schema_page=PAGE,
        page_files={
            **load_assets(),
            **(_load_page(settings) if settings.page == "on" else {}),
        },
        local_app=local_app,
    )


def _load_page(settings: Settings) -> dict[str, PageFile]:
    return load_page(page_files.FOLDER, page_headers(settings.frame_ancestors, settings.model_origins))


def _load_rate_card(settings: Settings, registry: Registry) -> RateCard | None:
    """Return the rate card of the settings, whose options the registry accepts. Raises InvalidSettings."""
    if settings.rates_file is None:
        return None
    try:
        card = read_rates(settings.rates_file)
        for name in card.materials:
            options = card.complete({"material": name}, registry.declarations)
            registry.check_request(Request(purpose="quote", options=options))
    except MeshhubError as error:
        raise InvalidSettings(f"rates_file: {error}") from error
    return card


def _create_jobs(
    settings: Settings,
    registry: Registry,
    resources: Resources,
    conversions: Conversions,
    plans: Mapping[str, Plan],
    secrets: WebhookSecrets,
    service_metrics: Metrics,
) -> Jobs:
    store, files, live_jobs = open_store(settings), open_files(settings), LiveJobs()
    webhooks = Webhooks(store, secrets, Destinations(settings.webhook_hosts), resources.threads, service_metrics)
    runs = JobConversions(registry, resources, conversions, files, plans)
    sweeper = Sweeper(store, files, resources.threads, live_jobs)
    runner: Runner = (
        _create_acceptor(settings, cast(ClusterStore, store), sweeper, webhooks, resources)
        if settings.is_cluster
        else JobRunner(
            store, JobRuns(store, files, runs, resources, live_jobs, service_metrics), sweeper, webhooks, resources
        )
    )
    return Jobs(settings, store, files, resources, webhooks, runner, live_jobs)


def _create_acceptor(
    settings: Settings, store: ClusterStore, sweeper: Sweeper, webhooks: Webhooks, resources: Resources
) -> Runner:
    """Return the runner of a server of a cluster, whose jobs run on workers."""
    # Procrastinate is part of an extra
    from meshhub.http.jobs.cluster import ClusterAcceptor, Placer
    from meshhub.service.jobs.delivery import JobDelivery

    delivery = JobDelivery(settings.jobs_database_url or "")
    return ClusterAcceptor(Placer(store, delivery, resources.threads), delivery, sweeper, webhooks)
