"""Webhooks: messages about the end of jobs, signed as Standard Webhooks describes (standardwebhooks.com)."""

from __future__ import annotations

import asyncio
import base64
import functools
import hashlib
import hmac
import logging
import random
import ssl
import time

from meshhub.errors import InvalidKey, InvalidOption
from meshhub.http.admission.threads import Threads
from meshhub.http.jobs.destinations import Destination, Destinations, Refused
from meshhub.http.metrics import Metrics
from meshhub.service.jobs.job import Delivery
from meshhub.service.jobs.store import DELIVERY_LEASE_S, JobStore
from meshhub.service.webhook_secrets import WebhookSecrets, secret_bytes

log = logging.getLogger("meshhub.http")

RETRIES_S = (5.0, 30.0, 300.0, 1800.0, 7200.0, 18_000.0, 36_000.0, 50_400.0, 72_000.0, 86_400.0)
"""Seconds between the attempts to deliver a message, about three days in all, as Standard Webhooks suggests."""

_JITTER_RATIO = 0.1
"""Random share of a pause, so that messages that failed together are not retried together."""

_TIMEOUT_S = 15.0
"""Seconds for one attempt, as Standard Webhooks suggests; well below DELIVERY_LEASE_S."""

_PARALLEL_COUNT = 8
"""Maximum messages delivered in parallel; a slow receiver delays only other messages."""

_MAX_STATUS_LINE_BYTES = 1000
"""Maximum bytes of the first line of a response; the rest is not read."""

_GONE = 410
"""Status with which a receiver declines further messages (Standard Webhooks)."""

assert _TIMEOUT_S < DELIVERY_LEASE_S


class Webhooks:
    """Sender of the messages of a store."""

    def __init__(
        self,
        store: JobStore,
        secrets: WebhookSecrets,
        destinations: Destinations,
        threads: Threads,
        service_metrics: Metrics,
    ) -> None:
        """Send messages to allowed destinations, signed with the secrets of their keys."""
        self._store = store
        self._secrets = secrets
        self._destinations = destinations
        self._threads = threads
        self._metrics = service_metrics

    @functools.cached_property
    def _tls(self) -> ssl.SSLContext:
        """Certificates of the system; they take a twentieth of a second to load, and most services send no message."""
        return ssl.create_default_context()

    async def check(self, key_id: str, url: str) -> None:
        """Check that messages to the URL that a caller sent can be sent. Raises InvalidOption."""
        self._destinations.parse(url)
        if not await self._threads.run_lookup(self._secrets.active, key_id):
            raise InvalidOption(
                f"option 'webhook_url': the key {key_id} has no webhook secret; ask the operator for one"
            )
        await self._destinations.check(url)

    async def deliver_due(self) -> None:
        """Send the messages that are due."""
        messages = await self._threads.run_job_storage(self._store.claim_deliveries, _PARALLEL_COUNT)
        await asyncio.gather(*(self._deliver(message) for message in messages))

    async def _deliver(self, message: Delivery) -> None:
        """Try to deliver a message, and record the attempt."""
        error, is_final = "", True
        try:
            status = await self._send(message)
            if not 200 <= status < 300:
                error, is_final = f"status {status}", status == _GONE
        except (OSError, TimeoutError, ValueError, EOFError, Refused, InvalidKey, InvalidOption) as raised:
            error, is_final = f"{type(raised).__name__}: {raised}", isinstance(raised, InvalidKey | InvalidOption)
        retry_in_s = None
        if not is_final and message.attempt <= len(RETRIES_S):
            retry_in_s = RETRIES_S[message.attempt - 1] * (1 + random.uniform(0, _JITTER_RATIO))  # noqa: S311
        outcome = "delivered" if not error else "given_up" if retry_in_s is None else "failed"
        self._metrics.count_webhook(outcome)
        if error:
            end = "was given up" if retry_in_s is None else f"is sent again in {retry_in_s:.0f} s"
            log.warning("webhook %s of key %s %s: %s", message.id, message.key_id, end, error)
        await self._threads.run_job_storage(self._store.settle_delivery, message.id, retry_in_s=retry_in_s, error=error)

    async def _send(self, message: Delivery) -> int:
        """Send a message; return the status of the response."""
        destination = self._destinations.parse(message.url)
        secrets = await self._threads.run_lookup(self._secrets.active, message.key_id)
        if not secrets:
            raise InvalidKey("the key has no webhook secret any more; create one with `meshhub webhooks create`")
        async with asyncio.timeout(_TIMEOUT_S):
            address = await self._destinations.resolve(destination)
            reader, writer = await asyncio.open_connection(
                address,
                destination.port,
                ssl=self._tls if destination.is_secure else None,
                server_hostname=destination.host if destination.is_secure else None,
                limit=_MAX_STATUS_LINE_BYTES,
            )
            try:
                writer.write(_build_request(destination, message, secrets))
                await writer.drain()
                # redirects are not followed: they could lead to an address that is not allowed
                return int((await reader.readline()).split()[1])
            except IndexError:
                raise ValueError("the response is not HTTP") from None
            finally:
                writer.transport.abort()


def _build_request(destination: Destination, message: Delivery, secrets: list[str]) -> bytes:
    body = message.payload.encode()
    timestamp = int(time.time())
    headers = {
        "Host": destination.authority,
        "Content-Type": "application/json",
        "Content-Length": str(len(body)),
        "User-Agent": "meshhub",
        "webhook-id": message.id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(sign(secret, message.id, timestamp, body) for secret in secrets),
        "Connection": "close",
    }
    lines = [f"POST {destination.path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join(lines).encode("ascii") + b"\r\n\r\n" + body


def sign(secret: str, message_id: str, timestamp: int, body: bytes) -> str:
    """Return the signature of a message, version 1: HMAC-SHA256 of id, timestamp and body."""
    signed = f"{message_id}.{timestamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.digest(secret_bytes(secret), signed, hashlib.sha256)).decode()
