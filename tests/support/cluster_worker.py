"""Worker of a cluster with the toy format, in a process: `python cluster_worker.py SETTINGS_JSON PLUGIN_MODULE…`."""

from __future__ import annotations

import importlib
import json
import sys

import service_plugins
from http_serving import GENEROUS
from meshhub.engine.isolated import Isolated, WorkerSharing
from meshhub.http.server.working import work
from meshhub.registry import Registry
from meshhub.service.settings import Settings


def main() -> None:
    settings = Settings(**{"plan_limits": GENEROUS, **json.loads(sys.argv[1])})
    engine = Isolated(workers=settings.most_at_once + 1, sharing=WorkerSharing(tasks=20))
    plugins = [service_plugins, *map(importlib.import_module, sys.argv[2:])]
    work(settings, Registry(plugins=plugins, entry_points=False, engine=engine))


if __name__ == "__main__":
    main()
