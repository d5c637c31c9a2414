"""Clients: threads that choose requests and behavior at random and check every response."""

from __future__ import annotations

import http.client
import itertools
import json
import random
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.soak import hostile
from benchmarks.soak.checking import ResponseChecker
from benchmarks.soak.connections import Connections, Form, Response, parse_response
from benchmarks.soak.gate import Gate
from benchmarks.soak.models import Case, Workload
from benchmarks.soak.record import BUSY, GOOD, LEFT, REJECTED, Recorder, WrongResponse
from benchmarks.soak.server import FREE_REQUESTS_PER_MINUTE
from benchmarks.step_mutations import KINDS

from meshhub.http.errors import STATUS

_NEVER_BUSY = "descriptions"
"""Kind of the requests that the service must answer under any load."""


@dataclass(frozen=True)
class Common:
    """State that all clients share."""

    port: int
    keys: Mapping[str, str]
    recorder: Recorder
    gate: Gate
    checker: ResponseChecker
    real: list[Case]
    large: Case
    hostile_files: list[hostile.RejectedRequest]
    invalid_requests: list[hostile.RejectedRequest]
    attack_folder: Path


class Client(threading.Thread):
    """One client. Odd numbers have a Pro key, multiples of four have no key, and the others have a Free key."""

    def __init__(self, number: int, workload: Workload, common: Common) -> None:
        super().__init__(daemon=True)
        self.stopping = False
        self._number, self._workload, self._common = number, workload, common
        self._recorder, self._checker = common.recorder, common.checker
        self._random = random.Random(number)
        self._connections = Connections(common.port, f"127.0.1.{number + 1}")
        self._plan = "pro" if number % 2 else "free"
        key = common.keys[self._plan] if number % 4 else ""
        self._own_headers = {"X-Api-Key": key} if key else {}
        self._hurried_headers = {"X-Api-Key": common.keys["hurried"]}
        self._descriptions: dict[str, tuple[str, bytes]] = {}
        self._numbers = itertools.count()
        weights: dict[Callable[[], None], float] = {
            self._convert: 34, self._convert_large: 0.6, self._convert_many: 8, self._convert_batch: 7,
            self._inspect: 8, self._describe: 10, self._send_invalid_request: 9, self._send_hostile_file: 8,
            self._attack: 4, self._convert_damaged_step: 4, self._send_broken_form: 3, self._send_other_protocol: 2,
            self._exceed_rate: 0.15, self._stall_in_headers: 0.1, self._convert_slowly: 1.5,
            self._leave_sending: 3, self._leave_waiting: 4, self._leave_reading: 3,
            self._convert_real: 9 if common.real else 0,
        }  # fmt: skip
        self._actions, self._weights = list(weights), list(weights.values())

    def run(self) -> None:
        """Send requests until `stopping` is set."""
        while not self.stopping:
            if self._common.gate.is_closed:
                self._connections.close()
                self._common.gate.wait()
                continue
            (action,) = self._random.choices(self._actions, self._weights)
            try:
                action()
            except WrongResponse as error:
                self._add_fault(action.__name__, str(error))
            except (OSError, http.client.HTTPException) as error:
                self._add_fault(action.__name__, f"the connection broke: {error!r}")
                self._connections.close()
            except Exception as error:
                self._add_fault(action.__name__, f"{type(error).__name__}: {error}")
        self._connections.close()

    def _add_fault(self, action: str, text: str) -> None:
        self._recorder.add_wrong(action.strip("_").replace("_", " "), f"client {self._number}: {text}")

    # requests that must succeed

    def _convert(self) -> None:
        self._convert_case("convert", self._case())

    def _convert_large(self) -> None:
        self._convert_case("convert, 15 MB", self._common.large)

    def _convert_real(self) -> None:
        self._convert_case("convert, real files", self._random.choice(self._common.real))

    def _convert_case(self, kind: str, case: Case) -> None:
        name = self._unique_name(case.name)
        form = Form((("file", name, case.data),), {"target": case.target, **case.options})
        response, seconds = self._request(kind, "/convert", form)
        if response is not None:
            self._checker.check_file(response, case, name)
            self._recorder.add(kind, GOOD if response.status == 200 else REJECTED, seconds)

    def _convert_many(self) -> None:
        target = self._random.choice(["stl", "ply", "glb", "3mf"])
        candidates = [case for case in self._workload.cases if case.target == target and case.expected.status == 200]
        if not candidates:
            return
        options = self._random.choice(candidates).options
        chosen = {self._unique_name(case.name): case for case in candidates if case.options == options}
        chosen = dict(list(chosen.items())[:3])
        files = [("files", name, case.data) for name, case in chosen.items()]
        entries = {f"{name.rpartition('.')[0]}.{target}": case.expected.file for name, case in chosen.items()}
        failed = {}
        if len(files) < 3 and self._random.random() < 0.5:
            files.append(("files", "damaged.glb", b"glTF no"))
            failed = {"damaged.glb": "unreadable_file"}
        response, seconds = self._request(
            "convert-many", "/convert-many", Form(tuple(files), {"target": target, **options})
        )
        if response is not None:
            self._checker.check_archive(response, entries, failed, f"many to {target}")
            self._recorder.add("convert-many", GOOD, seconds)

    def _convert_batch(self) -> None:
        archive = self._random.choice(self._workload.archives)
        report = self._random.random() < 0.3
        form = Form(
            (("archive", "models.zip", archive.archive),), {"target": archive.target, "report": str(report).lower()}
        )
        response, seconds = self._request("convert-batch", "/convert-batch", form)
        if response is not None:
            self._checker.check_archive(
                response, archive.entries, archive.failed, f"batch to {archive.target}", report=report
            )
            self._recorder.add("convert-batch", GOOD, seconds)

    def _inspect(self) -> None:
        case = self._random.choice(self._workload.inspections)
        response, seconds = self._request("inspect", "/inspect", Form((("file", case.name, case.data),)))
        if response is not None:
            self._checker.check_status(response, 200, case.name)
            if response.body != case.body:
                raise WrongResponse(f"{case.name}: {response.body[:300]!r}, not {case.body[:300]!r}")
            self._recorder.add("inspect", GOOD, seconds)

    def _describe(self) -> None:
        path = self._random.choice(
            ["/plan", "/supported", "/health/live", "/health/ready", "/metrics", "/schema", "/schema/openapi.json"]
        )
        description = self._descriptions.get(path)
        is_conditional = description is not None and path == "/supported" and self._random.random() < 0.5
        headers = (
            {**self._own_headers, "If-None-Match": description[0]}
            if description is not None and is_conditional
            else self._own_headers
        )
        response, seconds = self._request(_NEVER_BUSY, path, None, headers)
        if response is None:
            return
        self._checker.check_status(response, 304 if is_conditional else 200, path)
        if path == "/plan" and json.loads(response.body)["plan"] != self._plan:
            raise WrongResponse(f"/plan returned {response.body[:100]!r} to a {self._plan} client")
        if path == "/metrics" and b'outcome="internal_error"' in response.body:
            raise WrongResponse("/metrics counts an internal_error")
        if path in ("/supported", "/schema", "/schema/openapi.json") and not is_conditional:
            description = response.headers.get("etag", ""), response.body
            if self._descriptions.setdefault(path, description) != description:
                raise WrongResponse(f"{path} differs from before")
        self._recorder.add(_NEVER_BUSY, GOOD, seconds)

    # requests that must be rejected

    def _send_invalid_request(self) -> None:
        self._expect_rejection("wrong requests", self._random.choice(self._common.invalid_requests))

    def _send_hostile_file(self) -> None:
        self._expect_rejection("hostile files", self._random.choice(self._common.hostile_files))

    def _expect_rejection(self, kind: str, request: hostile.RejectedRequest) -> None:
        # these requests exceed the limits of the Free plan
        headers = request.headers or ({} if self._plan == "pro" else self._own_headers)
        response, seconds = self._request(kind, request.path, request.form, headers, chunked=request.chunked)
        if response is not None:
            self._checker.check_error(response, request.status, request.code, request.label)
            self._recorder.add(kind, REJECTED, seconds)

    def _attack(self) -> None:
        name = self._random.choice(list(hostile.ATTACKS))
        code = hostile.ATTACKS[name]
        response, seconds = self._request("hostile plug-in", "/convert", self._attack_form(name), self._hurried_headers)
        if response is None:
            return
        # the plan of this key stops an attack after two seconds
        if response.code == "conversion_timeout":
            code = response.code
        if code == "ok":
            self._checker.check_status(response, 200, name)
        else:
            self._checker.check_error(response, STATUS[code], code, name)
        self._recorder.add("hostile plug-in", GOOD if code == "ok" else REJECTED, seconds)

    def _attack_form(self, name: str) -> Form:
        return hostile.attack_form(name, self._common.attack_folder / f"{self._number}-{next(self._numbers)}")

    def _convert_damaged_step(self) -> None:
        kind = self._random.choice(KINDS)
        form = Form(
            (("file", "a.step", kind(self._random.choice(self._workload.step_files), self._random)),), {"target": "stl"}
        )
        response, seconds = self._request("damaged STEP", "/convert", form, self._hurried_headers)
        if response is None:
            return
        if response.status == 200:
            faces = int.from_bytes(response.body[80:84], "little")
            if not faces or len(response.body) != 84 + 50 * faces:
                raise WrongResponse(f"{kind.__name__}: not an STL file: {response.describe()}")
        elif response.code not in hostile.DAMAGED_STEP_CODES or response.status not in (422, 504):
            raise WrongResponse(f"{kind.__name__}: {response.describe()}")
        self._recorder.add("damaged STEP", GOOD if response.status == 200 else REJECTED, seconds)

    def _send_broken_form(self) -> None:
        kind, body = self._random.choice(hostile.DAMAGED_FORMS)
        response = self._retry_if_limited(
            "broken forms", lambda: self._connections.send("POST", "/convert", kind, body, self._own_headers)
        )
        if response is not None:
            self._checker.check_error(response, 400, "invalid_multipart", f"a form of {len(body)} B as {kind}")
            self._recorder.add("broken forms", REJECTED)

    def _send_other_protocol(self) -> None:
        data = self._random.choice(hostile.NOT_HTTP)
        response = parse_response(self._connections.exchange_raw(data))
        self._checker.check_error(response, 400, "bad_request", f"{data[:60]!r}")
        self._recorder.add("non-HTTP input", REJECTED)

    def _exceed_rate(self) -> None:
        """Send requests from a new address: exactly the permitted number must pass."""
        numbers = (self._random.randrange(2, 250) for _ in range(3))
        connections = Connections(self._common.port, "127." + ".".join(map(str, numbers)))
        started = time.monotonic()
        passed = sum(connections.request("GET", "/plan").status == 200 for _ in range(FREE_REQUESTS_PER_MINUTE))
        late = [connections.request("GET", "/plan") for _ in range(10)]
        connections.close()
        # on a slow machine the limit, which covers a minute, no longer counts the first requests
        if time.monotonic() - started < 55:
            if passed != FREE_REQUESTS_PER_MINUTE:
                raise WrongResponse(f"only {passed} of {FREE_REQUESTS_PER_MINUTE} requests passed")
            for response in late:
                self._checker.check_error(response, 429, "rate_limit_exceeded", "a request beyond the rate")
                if not 1 <= int(response.headers.get("retry-after", "0")) <= 60:
                    raise WrongResponse(f"Retry-After is {response.headers.get('retry-after')!r}")
        self._recorder.add("too many in a row", REJECTED)

    # clients that leave, and slow clients

    def _leave_sending(self) -> None:
        form, path = self._choose_job()
        self._connections.leave_while_sending(path, form, self._own_headers, self._random.random(), abrupt=self._abrupt)
        self._recorder.add("left while sending", LEFT)

    def _leave_waiting(self) -> None:
        (form, path), headers = self._choose_job(), self._own_headers
        if self._random.random() < 0.3:
            form, path, headers = self._attack_form("hang"), "/convert", self._hurried_headers
        self._connections.leave_while_waiting(path, form, headers, self._random.uniform(0, 1.5), abrupt=self._abrupt)
        self._recorder.add("left while waiting", LEFT)

    def _leave_reading(self) -> None:
        case = self._common.large if self._random.random() < 0.2 else self._random.choice(self._workload.cases)
        form = Form((("file", case.name, case.data),), {"target": "obj"})
        self._connections.leave_while_reading(
            "/convert", form, self._own_headers, self._random.choice([1, 5000]), abrupt=self._abrupt
        )
        self._recorder.add("left while reading", LEFT)

    def _convert_slowly(self) -> None:
        case = self._case()
        form = Form((("file", case.name, case.data),), {"target": case.target, **case.options})
        seconds = self._random.uniform(1, 4)
        upload_s, download_s = (seconds, 0.0) if self._random.random() < 0.5 else (0.0, seconds)
        response = self._retry_if_limited(
            "slow clients",
            lambda: self._connections.send_slowly(
                "/convert", form, self._own_headers, upload_s=upload_s, download_s=download_s
            ),
        )
        if response is not None:
            self._checker.check_file(response, case, case.name)
            self._recorder.add("slow clients", GOOD if response.status == 200 else REJECTED)

    def _stall_in_headers(self) -> None:
        """Send headers that never end; the service must answer 408 after 15 seconds."""
        started = time.monotonic()
        received = self._connections.exchange_raw(b"GET /plan HTTP/1.1\r\nHost: x\r\nX-Slow: ")
        is_rejected = received.startswith(b"HTTP/1.1 408 ") and b'"request_timeout"' in received
        if not is_rejected or not 10 < time.monotonic() - started < 60:
            raise WrongResponse(f"headers without end: {received[:100]!r} after {time.monotonic() - started:.1f} s")
        self._recorder.add("headers without end", REJECTED)

    # choosing and sending

    def _case(self) -> Case:
        """Return a conversion that the client's plan permits."""
        return self._random.choice(
            [case for case in self._workload.cases if self._plan == "pro" or case.target != "step"]
        )

    def _choose_job(self) -> tuple[Form, str]:
        """Return the form and the path of a random conversion."""
        if self._random.random() < 0.3:
            archive = self._random.choice(self._workload.archives)
            return Form((("archive", "a.zip", archive.archive),), {"target": archive.target}), "/convert-batch"
        case = self._case()
        return Form((("file", case.name, case.data),), {"target": case.target, **case.options}), "/convert"

    def _unique_name(self, name: str) -> str:
        """Return a file name that no other request of this client has."""
        return f"{next(self._numbers)}-{name}"

    @property
    def _abrupt(self) -> bool:
        return self._random.random() < 0.5

    def _request(
        self,
        kind: str,
        path: str,
        form: Form | None,
        headers: Mapping[str, str] | None = None,
        *,
        chunked: bool = False,
    ) -> tuple[Response | None, float]:
        """Send a request, by default with the client's own key.

        Returns:
            Response, or None if the service was busy, and the seconds.
        """
        fresh = self._random.random() < 0.3
        chunked = form is not None and (chunked or self._random.random() < 0.1)
        sent_headers = self._own_headers if headers is None else headers
        method = "GET" if form is None else "POST"
        started = 0.0

        def send() -> Response:
            nonlocal started
            started = time.monotonic()
            return self._connections.request(method, path, form, sent_headers, fresh=fresh, chunked=chunked)

        return self._retry_if_limited(kind, send), time.monotonic() - started

    def _retry_if_limited(self, kind: str, send: Callable[[], Response]) -> Response | None:
        """Send a request until the rate limit permits it; return None if the service is busy or the gate closes."""
        response = send()
        while response.status == 429 and response.headers.get("ratelimit-limit") == str(FREE_REQUESTS_PER_MINUTE):
            self._recorder.add("slowed down", REJECTED)
            until = time.monotonic() + min(60, int(response.headers["retry-after"]))
            while time.monotonic() < until:
                if self._common.gate.is_closed:
                    return None
                time.sleep(0.2)
            response = send()
        if response.status != 503:
            return response
        self._checker.check_error(response, 503, "server_busy", kind)
        if "retry-after" not in response.headers or kind == _NEVER_BUSY:
            raise WrongResponse(f"{kind}: {response.describe()}, {response.headers}")
        self._recorder.add(kind, BUSY)
        time.sleep(self._random.uniform(0.2, 1))
        return None
