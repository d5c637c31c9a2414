"""Calls of the sniffers of a request."""

from __future__ import annotations

import math
from collections.abc import Sequence

from meshhub.model.capabilities import Reader
from meshhub.pipeline.declarations import Declared
from meshhub.pipeline.identify import SniffFailure, ask_score, take_score
from meshhub.pipeline.questions import Ask, Reply, answer

_NOT_CALLED = "was not called: earlier calls used up its time; try again"


class Sniffers:
    """Sniffers for the files of one request. Those of installed plug-ins have a time limit for all files together."""

    def __init__(self, installed: frozenset[str], ask: Ask, timeout_s: float | None, *, has_details: bool) -> None:
        """Prepare the calls for one request.

        Args:
            installed: Names of the installed plug-ins; the sniffers of others are called in this thread.
            ask: Calls the sniffers of installed plug-ins.
            timeout_s: Seconds for each of them; None for no limit.
            has_details: Whether failures have the texts of exceptions.
        """
        self._installed = installed
        self._ask = ask
        self._timeout_s = timeout_s
        self._has_details = has_details
        self._used_s: dict[str, float] = {}

    def __call__(self, readers: Sequence[Declared[Reader]], head: bytes, size: int) -> list[int | SniffFailure]:
        """Return the score of each reader, or how its sniffer failed."""
        asked = [number for number, reader in enumerate(readers) if self._may_ask(reader)]
        questions = [ask_score(readers[number], head, size, self._left_s(readers[number])) for number in asked]
        replies = dict(zip(asked, self._ask(questions) if questions else (), strict=True))
        for number, reply in replies.items():
            sniffer = readers[number].capability.sniff or ""
            # one that ended its process is not called again for this request
            self._used_s[sniffer] = math.inf if reply.is_lost else self._used_s.get(sniffer, 0.0) + reply.seconds
        return [self._score(reader, head, size, replies.get(number)) for number, reader in enumerate(readers)]

    def _may_ask(self, reader: Declared[Reader]) -> bool:
        left_s = self._left_s(reader)
        return reader.plugin in self._installed and (left_s is None or left_s > 0)

    def _left_s(self, reader: Declared[Reader]) -> float | None:
        used_s = self._used_s.get(reader.capability.sniff or "", 0.0)
        return -math.inf if used_s == math.inf else None if self._timeout_s is None else self._timeout_s - used_s

    def _score(self, reader: Declared[Reader], head: bytes, size: int, reply: Reply | None) -> int | SniffFailure:
        if reply is None and reader.plugin in self._installed:
            return SniffFailure(_NOT_CALLED, _NOT_CALLED)
        score = take_score(reader, reply or answer(ask_score(reader, head, size)))
        if isinstance(score, SniffFailure) and not self._has_details:
            return SniffFailure(score.summary, score.summary)
        return score
