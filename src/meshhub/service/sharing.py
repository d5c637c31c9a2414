"""How callers share slots: one rule for the service and for each worker of a cluster.

A caller takes shared slots while some are free. A caller without a slot may start beyond them: in one slot more, beside
conversions that have run for a while, and in slots that are reserved for callers with a key or without one.
"""

# why this way: docs/decisions/0031-sharing-by-time.md
from __future__ import annotations

import math

from msgspec import Struct

KEY = "key:"
"""Beginning of the rate limit key of a caller with an API key."""

LONG_S = 1.0
"""Seconds after which another conversion may start beside a running one; a caller without a slot waits no longer. Most
conversions are shorter, and jobs are looked for once per second, so that a job waits for two."""

_RESERVED_RATIO = 0.25
"""Reserved slots of a class of callers, for each shared slot."""

_OVERLAP_RATIO = 0.5
"""Conversions that may start beside long ones, for each shared slot; each takes memory from all others."""

_MIN_OVERLAP_COUNT = 2
"""Minimum of the same: three callers with long conversions, one of whom has all shared slots, leave room for others."""


def has_key(caller: str) -> bool:
    """Return whether a caller, named by its rate limit key, has an API key."""
    return caller.startswith(KEY)


class SlotUse(Struct, frozen=True, kw_only=True):
    """Slots in use when a caller asks for another.

    Attributes:
        total: Slots of all callers.
        own_class: Slots of all callers with a key if the caller has one; else of those without.
        long: Slots of all callers for longer than LONG_S.
    """

    total: int
    own: int
    own_class: int
    long: int


class SlotLimits(Struct, frozen=True, kw_only=True):
    """Numbers of slots.

    Attributes:
        shared: Slots for all callers; one more is for a caller without a slot.
        reserved: Slots that callers with a key have, and callers without one, if the others take all of the above.
        overlap: Long conversions that do not count when a caller without a slot asks.
    """

    shared: int
    reserved: int = 0
    overlap: int = 0

    @classmethod
    def of_workers(cls, count: int) -> SlotLimits:
        """Return the limits for a number of parallel conversions."""
        return cls(
            shared=count,
            reserved=math.ceil(count * _RESERVED_RATIO),
            overlap=max(_MIN_OVERLAP_COUNT, math.ceil(count * _OVERLAP_RATIO)),
        )

    @property
    def total(self) -> int:
        """Maximum number of slots in use. Only one class can need its reserve: the other has all other slots."""
        return self.shared + 1 + self.overlap + self.reserved

    def can_start(self, use: SlotUse, cores: int = 1) -> bool:
        """Return whether a caller may take a slot, or several for a conversion on several cores."""
        if use.total + cores <= self.shared:
            return True
        if use.own or cores > 1:
            return False
        return use.total - min(use.long, self.overlap) <= self.shared or use.own_class < self.reserved
