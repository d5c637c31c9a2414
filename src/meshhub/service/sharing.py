"""How callers share slots: one rule for the service and for each worker of a cluster.

A caller takes shared slots while some are free. A caller without a slot may start beyond them: in one more slot, beside
conversions that have run for a while, or in slots that are reserved for callers with or without a key.
"""

# why this way: docs/decisions/0031-sharing-by-time.md
from __future__ import annotations

import math

from msgspec import Struct

KEY = "key:"
"""Beginning of the rate limit key of a caller with an API key."""

LONG_S = 1.0
"""Seconds after which another conversion may start beside a running one; a caller without a slot waits no longer. Most
conversions are shorter; jobs are looked for once per second, so a job waits for two seconds.
"""

_RESERVED_RATIO = 0.25
"""Reserved slots of a class of callers, for each shared slot."""

_OVERLAP_RATIO = 0.5
"""Maximum conversions beside long ones, for each shared slot; bounded, because each takes memory from others. """

_MIN_OVERLAP_COUNT = 2
"""Minimum of the same number: even three callers with long conversions, one with all shared slots, leave room. """


def has_key(caller: str) -> bool:
    """Return whether a caller, named by its rate limit key, has an API key."""
    return caller.startswith(KEY)


class SlotUse(Struct, frozen=True, kw_only=True):
    """Slots in use when a caller asks for another.

    Attributes:
        total: Slots of all callers.
        own_class: Slots of all callers with a key if the caller has one; otherwise of all callers without a key.
        long: Slots that all callers have held for longer than LONG_S.
    """

    total: int
    own: int
    own_class: int
    long: int


class SlotLimits(Struct, frozen=True, kw_only=True):
    """Numbers of slots.

    Attributes:
        shared: Slots for all callers; one more is for a caller without a slot.
        reserved: Slots that callers with a key, and callers without one, have in reserve, if the others take all shared
            slots.
        overlap: Long conversions that are ignored when a caller without a slot asks for one.
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
        """Maximum number of slots in use. Only one class can need its reserve, as the other has all other slots."""
        return self.shared + 1 + self.overlap + self.reserved

    def can_start(self, use: SlotUse) -> bool:
        """Return whether a caller may take a slot."""
        if use.total < self.shared:
            return True
        if use.own:
            return False
        return use.total - min(use.long, self.overlap) <= self.shared or use.own_class < self.reserved
