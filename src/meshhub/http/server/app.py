"""The application: parts put together, handlers registered."""

from __future__ import annotations

import msgspec
from litestar.exceptions import HTTPException

from meshhub.engine.contract import Engine
from meshhub.engine.hook_process import HookProcess
from meshhub.engine.isolated import Isolated
from meshhub.engine.plugin_records import PluginRecords
from meshhub.engine.worker import Limits as WorkerLimits
from meshhub.errors import InvalidSettings
from meshhub.http.admission.addresses import networks
from meshhub.http.admission.failed_keys import Guesses
from meshhub.http.admission.rates import RateLimits
from meshhub.http.admission.resources import Jobs
from meshhub.http.conversions.probe import Probe
from meshhub.http.conversions.runner import Conversions
from meshhub.http.description.openapi import document
from meshhub.http.description.page import page
from meshhub.http.endpoints.convert import convert
from meshhub.http.endpoints.convert_batch import convert_batch
from meshhub.http.endpoints.convert_many import convert_many
from meshhub.http.endpoints.guard import gate
from meshhub.http.endpoints.health import live, ready
from meshhub.http.endpoints.inspect import inspect
from meshhub.http.endpoints.metrics import metrics as metrics_page
from meshhub.http.endpoints.plan import plan
from meshhub.http.endpoints.schema import schema_document, schema_page
from meshhub.http.endpoints.supported import supported
from meshhub.http.errors import answer_error
from meshhub.http.metrics import Metrics
from meshhub.http.server.middleware import Service
from meshhub.http.state import Shared
from meshhub.registry import Registry
from meshhub.service.keys import KeyStore
from meshhub.service.settings import Settings


def isolated(settings: Settings) -> Isolated:
    """The engine that the settings describe: a process for every conversion.

    Who waits is the service's to say, so the engine has room for all that it lets in, and for the probe.
    """
    return Isolated(
        workers=settings.most_at_once + 1,
        queue=settings.queue,
        limits=WorkerLimits(memory_bytes=settings.conversion_memory_bytes),
        folder=settings.temporary_folder,
        log=settings.log,
    )


def hook_process(settings: Settings) -> HookProcess:
    """Return where third parties' hooks run in a service: in one process, with deadlines; plug-ins are probed first."""
    return HookProcess(folder=settings.temporary_folder, log=settings.log, records=PluginRecords())


def create_app(
    settings: Settings | None = None,
    registry: Registry | None = None,
    keys: KeyStore | None = None,
    engine: Engine | None = None,
) -> Service:
    """The service, for any ASGI server. Run one process: the limits and the queue are its own.

    settings: from the environment unless given
    registry: built-ins and installed plug-ins unless given; it runs conversions on its own engine, and hooks where
              it says (default: in this process, without a deadline; see `hook_process`)
    keys:     the store that the settings name unless given
    engine:   for the registry made here; a process for every conversion unless given

    Raises InvalidSettings for settings that make no sense. What is made here is closed with the service.
    """
    settings = settings or Settings.from_environment()
    if registry is not None and engine is not None:
        raise ValueError("give the engine to the registry: Registry(engine=…)")
    own_registry, own_keys = registry is None, keys is None
    if registry is None:
        registry = Registry(engine=engine or isolated(settings), hooks=hook_process(settings))
    plans = settings.in_force(registry.plans)
    try:
        keys = keys or KeyStore(settings.database_url)
    except ValueError as error:
        raise InvalidSettings(f"database_url: {error}") from error
    try:
        rates = RateLimits(settings.rate_limit_url)
    except ValueError as error:
        raise InvalidSettings(str(error)) from error
    jobs = Jobs(settings)
    described = document(registry)
    metrics = Metrics(registry, jobs, frozenset(described["paths"]))
    shared = Shared(
        settings=settings,
        registry=registry,
        keys=keys,
        jobs=jobs,
        rates=rates,
        guesses=Guesses(rates, plans[settings.free_plan].limits.requests_per_minute),
        conversions=Conversions(registry, jobs, metrics, settings.batch_worker_count),
        probe=Probe(registry, jobs),
        metrics=metrics,
        plans=plans,
        trusted=networks(settings.trusted_proxies),
        schema_document=msgspec.json.encode(described),
        schema_page=page(described).encode(),
    )

    async def close() -> None:
        jobs.stop()
        await shared.rates.close()
        if own_registry:
            shared.registry.close()
        jobs.close()
        if own_keys:
            shared.keys.close()

    app = Service(
        route_handlers=[
            convert,
            convert_many,
            convert_batch,
            plan,
            supported,
            inspect,
            live,
            ready,
            metrics_page,
            schema_page,
            schema_document,
        ],
        guards=[gate],
        exception_handlers={HTTPException: answer_error, Exception: answer_error},
        on_shutdown=[close],
        # the document is our own: the framework cannot tell the fields that plug-ins declare
        openapi_config=None,
        logging_config=None,
        debug=False,
    )
    app.state.shared = shared
    return app
