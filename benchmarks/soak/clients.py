"""The clients: each a thread that chooses at random what to ask and how to behave, and checks every answer."""

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
from benchmarks.soak.gate import Gate
from benchmarks.soak.judging import Judge
from benchmarks.soak.models import Book, Case
from benchmarks.soak.record import BUSY, GOOD, LEFT, REFUSED, Record, Wrong
from benchmarks.soak.server import FREE_PER_MINUTE
from benchmarks.soak.wire import Answer, Form, Wire, parsed
from benchmarks.step_mutations import KINDS

from meshhub.http.errors import STATUS

_NEVER_BUSY = "descriptions"
"""What is answered however much there is to convert."""


@dataclass(frozen=True)
class Common:
    """What all clients have in common."""

    port: int
    keys: Mapping[str, str]
    record: Record
    gate: Gate
    judge: Judge
    real: list[Case]
    large: Case
    refused: list[hostile.Refused]
    wrong: list[hostile.Refused]
    misdeeds: Path


class Client(threading.Thread):
    """One client. The odd ones have a Pro key, every fourth a key of the free plan, the others none."""

    def __init__(self, number: int, book: Book, common: Common) -> None:
        super().__init__(daemon=True)
        self.stopping = False
        self._number, self._book, self._common = number, book, common
        self._record, self._judge = common.record, common.judge
        self._random = random.Random(number)
        self._wire = Wire(common.port, f"127.0.1.{number + 1}")
        self._plan = "pro" if number % 2 else "free"
        key = common.keys[self._plan] if number % 4 else ""
        self._own = {"X-Api-Key": key} if key else {}
        self._hurried = {"X-Api-Key": common.keys["hurried"]}
        self._seen: dict[str, tuple[str, bytes]] = {}
        self._numbers = itertools.count()
        weights: dict[Callable[[], None], float] = {
            self._convert: 34, self._convert_large: 0.6, self._many: 8, self._batch: 7, self._inspect: 8,
            self._describe: 10, self._wrong: 9, self._hostile: 8, self._misdeed: 4, self._damaged: 4,
            self._broken_form: 3, self._not_http: 2, self._hasty: 0.15, self._stalled: 0.1, self._slow: 1.5,
            self._leave_sending: 3, self._leave_waiting: 4, self._leave_reading: 3,
            self._convert_real: 9 if common.real else 0,
        }  # fmt: skip
        self._actions, self._weights = list(weights), list(weights.values())

    def run(self) -> None:
        """Ask until told to stop."""
        while not self.stopping:
            if self._common.gate.shut:
                self._wire.close()
                self._common.gate.passing()
                continue
            (action,) = self._random.choices(self._actions, self._weights)
            try:
                action()
            except Wrong as error:
                self._fault(action.__name__, str(error))
            except (OSError, http.client.HTTPException) as error:
                self._fault(action.__name__, f"the connection broke: {error!r}")
                self._wire.close()
            except Exception as error:
                self._fault(action.__name__, f"{type(error).__name__}: {error}")
        self._wire.close()

    def _fault(self, action: str, text: str) -> None:
        self._record.fault(action.strip("_").replace("_", " "), f"client {self._number}: {text}")

    # what must be answered with results

    def _convert(self) -> None:
        self._converted("convert", self._case())

    def _convert_large(self) -> None:
        self._converted("convert, 15 MB", self._common.large)

    def _convert_real(self) -> None:
        self._converted("convert, real files", self._random.choice(self._common.real))

    def _converted(self, kind: str, case: Case) -> None:
        name = self._named(case.name)
        form = Form((("file", name, case.data),), {"target": case.target, **case.options})
        answer, seconds = self._asked(kind, "/convert", form)
        if answer is not None:
            self._judge.file(answer, case, name)
            self._record.note(kind, GOOD if answer.status == 200 else REFUSED, seconds)

    def _many(self) -> None:
        target = self._random.choice(["stl", "ply", "glb", "3mf"])
        fitting = [case for case in self._book.cases if case.target == target and case.expected.status == 200]
        if not fitting:
            return
        options = self._random.choice(fitting).options
        chosen = {self._named(case.name): case for case in fitting if case.options == options}
        chosen = dict(list(chosen.items())[:3])
        files = [("files", name, case.data) for name, case in chosen.items()]
        entries = {f"{name.rpartition('.')[0]}.{target}": case.expected.file for name, case in chosen.items()}
        failed = {}
        if len(files) < 3 and self._random.random() < 0.5:
            files.append(("files", "rubbish.glb", b"glTF no"))
            failed = {"rubbish.glb": "unreadable_file"}
        answer, seconds = self._asked(
            "convert-many", "/convert-many", Form(tuple(files), {"target": target, **options})
        )
        if answer is not None:
            self._judge.archive(answer, entries, failed, f"many to {target}")
            self._record.note("convert-many", GOOD, seconds)

    def _batch(self) -> None:
        bundle = self._random.choice(self._book.bundles)
        report = self._random.random() < 0.3
        form = Form(
            (("archive", "models.zip", bundle.archive),), {"target": bundle.target, "report": str(report).lower()}
        )
        answer, seconds = self._asked("convert-batch", "/convert-batch", form)
        if answer is not None:
            self._judge.archive(answer, bundle.entries, bundle.failed, f"batch to {bundle.target}", report=report)
            self._record.note("convert-batch", GOOD, seconds)

    def _inspect(self) -> None:
        look = self._random.choice(self._book.looks)
        answer, seconds = self._asked("inspect", "/inspect", Form((("file", look.name, look.data),)))
        if answer is not None:
            self._judge.status(answer, 200, look.name)
            if answer.body != look.body:
                raise Wrong(f"{look.name}: {answer.body[:300]!r}, not {look.body[:300]!r}")
            self._record.note("inspect", GOOD, seconds)

    def _describe(self) -> None:
        path = self._random.choice(
            ["/plan", "/supported", "/health/live", "/health/ready", "/metrics", "/schema", "/schema/openapi.json"]
        )
        seen = self._seen.get(path)
        again = seen is not None and path == "/supported" and self._random.random() < 0.5
        headers = {**self._own, "If-None-Match": seen[0]} if seen is not None and again else self._own
        answer, seconds = self._asked(_NEVER_BUSY, path, None, headers)
        if answer is None:
            return
        self._judge.status(answer, 304 if again else 200, path)
        if path == "/plan" and json.loads(answer.body)["plan"] != self._plan:
            raise Wrong(f"/plan tells {answer.body[:100]!r} to a {self._plan} client")
        if path == "/metrics" and b'outcome="internal_error"' in answer.body:
            raise Wrong("/metrics tells of an internal_error")
        if path in ("/supported", "/schema", "/schema/openapi.json") and not again:
            found = answer.headers.get("etag", ""), answer.body
            if self._seen.setdefault(path, found) != found:
                raise Wrong(f"{path} tells something else than before")
        self._record.note(_NEVER_BUSY, GOOD, seconds)

    # what must be refused

    def _wrong(self) -> None:
        self._refused("wrong requests", self._random.choice(self._common.wrong))

    def _hostile(self) -> None:
        self._refused("hostile files", self._random.choice(self._common.refused))

    def _refused(self, kind: str, one: hostile.Refused) -> None:
        # a Free customer's limits are the ones that these overstep
        headers = one.headers or ({} if self._plan == "pro" else self._own)
        answer, seconds = self._asked(kind, one.path, one.form, headers, chunked=one.chunked)
        if answer is not None:
            self._judge.code(answer, one.status, one.code, one.word)
            self._record.note(kind, REFUSED, seconds)

    def _misdeed(self) -> None:
        name = self._random.choice(list(hostile.MISDEEDS))
        code = hostile.MISDEEDS[name]
        answer, seconds = self._asked("hostile plug-in", "/convert", self._form_of(name), self._hurried)
        if answer is None:
            return
        # a misdeed that is not done within two seconds is over then
        if answer.code == "conversion_timeout":
            code = answer.code
        if code == "ok":
            self._judge.status(answer, 200, name)
        else:
            self._judge.code(answer, STATUS[code], code, name)
        self._record.note("hostile plug-in", GOOD if code == "ok" else REFUSED, seconds)

    def _form_of(self, misdeed: str) -> Form:
        return hostile.misdeed(misdeed, self._common.misdeeds / f"{self._number}-{next(self._numbers)}")

    def _damaged(self) -> None:
        kind = self._random.choice(KINDS)
        form = Form((("file", "a.step", kind(self._random.choice(self._book.steps), self._random)),), {"target": "stl"})
        answer, seconds = self._asked("damaged STEP", "/convert", form, self._hurried)
        if answer is None:
            return
        if answer.status == 200:
            faces = int.from_bytes(answer.body[80:84], "little")
            if not faces or len(answer.body) != 84 + 50 * faces:
                raise Wrong(f"{kind.__name__}: no STL: {answer.shown()}")
        elif answer.code not in hostile.DAMAGED or answer.status not in (422, 504):
            raise Wrong(f"{kind.__name__}: {answer.shown()}")
        self._record.note("damaged STEP", GOOD if answer.status == 200 else REFUSED, seconds)

    def _broken_form(self) -> None:
        kind, body = self._random.choice(hostile.DAMAGED_FORMS)
        answer = self._heard("broken forms", lambda: self._wire.send("POST", "/convert", kind, body, self._own))
        if answer is not None:
            self._judge.code(answer, 400, "invalid_multipart", f"a form of {len(body)} B as {kind}")
            self._record.note("broken forms", REFUSED)

    def _not_http(self) -> None:
        sent = self._random.choice(hostile.NOT_HTTP)
        self._judge.code(parsed(self._wire.raw(sent)), 400, "bad_request", f"{sent[:60]!r}")
        self._record.note("no HTTP", REFUSED)

    def _hasty(self) -> None:
        """One request after the other from an address that nobody had before: the limit passes, and no more."""
        numbers = (self._random.randrange(2, 250) for _ in range(3))
        wire = Wire(self._common.port, "127." + ".".join(map(str, numbers)))
        started = time.monotonic()
        passed = sum(wire.ask("GET", "/plan").status == 200 for _ in range(FREE_PER_MINUTE))
        late = [wire.ask("GET", "/plan") for _ in range(10)]
        wire.close()
        # on a machine that slow the first of them are a minute ago already
        if time.monotonic() - started < 55:
            if passed != FREE_PER_MINUTE:
                raise Wrong(f"only {passed} of {FREE_PER_MINUTE} requests passed")
            for answer in late:
                self._judge.code(answer, 429, "rate_limit_exceeded", "a request beyond the rate")
                if not 1 <= int(answer.headers.get("retry-after", "0")) <= 60:
                    raise Wrong(f"Retry-After is {answer.headers.get('retry-after')!r}")
        self._record.note("too many in a row", REFUSED)

    # who leaves, and who takes long

    def _leave_sending(self) -> None:
        form, path = self._work()
        self._wire.leave_while_sending(path, form, self._own, self._random.random(), rude=self._rude)
        self._record.note("left while sending", LEFT)

    def _leave_waiting(self) -> None:
        (form, path), headers = self._work(), self._own
        if self._random.random() < 0.3:
            form, path, headers = self._form_of("hang"), "/convert", self._hurried
        self._wire.leave_while_waiting(path, form, headers, self._random.uniform(0, 1.5), rude=self._rude)
        self._record.note("left while waiting", LEFT)

    def _leave_reading(self) -> None:
        case = self._common.large if self._random.random() < 0.2 else self._random.choice(self._book.cases)
        form = Form((("file", case.name, case.data),), {"target": "obj"})
        self._wire.leave_while_reading("/convert", form, self._own, self._random.choice([1, 5000]), rude=self._rude)
        self._record.note("left while reading", LEFT)

    def _slow(self) -> None:
        case = self._case()
        form = Form((("file", case.name, case.data),), {"target": case.target, **case.options})
        seconds = self._random.uniform(1, 4)
        up, down = (seconds, 0.0) if self._random.random() < 0.5 else (0.0, seconds)
        answer = self._heard("slow clients", lambda: self._wire.slowly("/convert", form, self._own, up=up, down=down))
        if answer is not None:
            self._judge.file(answer, case, case.name)
            self._record.note("slow clients", GOOD if answer.status == 200 else REFUSED)

    def _stalled(self) -> None:
        """Headers that never end: the service hangs up after 15 seconds."""
        started = time.monotonic()
        came = self._wire.raw(b"GET /plan HTTP/1.1\r\nHost: x\r\nX-Slow: ")
        if came or not 10 < time.monotonic() - started < 60:
            raise Wrong(f"headers without end: {came[:100]!r} after {time.monotonic() - started:.1f} s")
        self._record.note("headers without end", REFUSED)

    # how it asks

    def _case(self) -> Case:
        """A conversion that this client's plan allows."""
        return self._random.choice([one for one in self._book.cases if self._plan == "pro" or one.target != "step"])

    def _work(self) -> tuple[Form, str]:
        """Some conversion, and where it is asked for."""
        if self._random.random() < 0.3:
            bundle = self._random.choice(self._book.bundles)
            return Form((("archive", "a.zip", bundle.archive),), {"target": bundle.target}), "/convert-batch"
        case = self._case()
        return Form((("file", case.name, case.data),), {"target": case.target, **case.options}), "/convert"

    def _named(self, name: str) -> str:
        """A name that no other request of this client has."""
        return f"{next(self._numbers)}-{name}"

    @property
    def _rude(self) -> bool:
        return self._random.random() < 0.5

    def _asked(
        self,
        kind: str,
        path: str,
        form: Form | None,
        headers: Mapping[str, str] | None = None,
        *,
        chunked: bool = False,
    ) -> tuple[Answer | None, float]:
        """An answer and its seconds, with the client's own key unless other headers are told; None when too busy."""
        fresh = self._random.random() < 0.3
        chunked = form is not None and (chunked or self._random.random() < 0.1)
        told, method = self._own if headers is None else headers, "GET" if form is None else "POST"
        started = 0.0

        def ask() -> Answer:
            nonlocal started
            started = time.monotonic()
            return self._wire.ask(method, path, form, told, fresh=fresh, chunked=chunked)

        return self._heard(kind, ask), time.monotonic() - started

    def _heard(self, kind: str, ask: Callable[[], Answer]) -> Answer | None:
        """An answer that refuses neither for the rate nor for want of room; None when there is none by now."""
        answer = ask()
        while answer.status == 429 and answer.headers.get("ratelimit-limit") == str(FREE_PER_MINUTE):
            self._record.note("slowed down", REFUSED)
            until = time.monotonic() + min(60, int(answer.headers["retry-after"]))
            while time.monotonic() < until:
                if self._common.gate.shut:
                    return None
                time.sleep(0.2)
            answer = ask()
        if answer.status != 503:
            return answer
        self._judge.code(answer, 503, "server_busy", kind)
        if "retry-after" not in answer.headers or kind == _NEVER_BUSY:
            raise Wrong(f"{kind}: {answer.shown()}, {answer.headers}")
        self._record.note(kind, BUSY)
        time.sleep(self._random.uniform(0.2, 1))
        return None
