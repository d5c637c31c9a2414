"""Client of a meshhub service, synchronous and asynchronous.

with Client("https://meshhub.example", key=key) as client:
    job = client.convert("bracket.stl", "bracket.3mf", repair=True)

It needs httpx: `pip install httpx`.
"""

from __future__ import annotations

from importlib.util import find_spec

from meshhub.errors import describe_missing
from meshhub.model.installing import describe_install

if find_spec("httpx") is None:
    raise ImportError(describe_missing("the client", ["httpx"], describe_install("meshhub[client]")), name="httpx")

from meshhub.client.asynchronous import AsyncClient
from meshhub.client.synchronous import Client
from meshhub.service.jobs.description import JobDescription, JobList, ProgressDescription, ResultDescription
from meshhub.service.plan_answer import PlanAnswer

__all__ = [
    "AsyncClient",
    "Client",
    "JobDescription",
    "JobList",
    "PlanAnswer",
    "ProgressDescription",
    "ResultDescription",
]
