"""Registry whose checks fail if a finding has no German message."""

from __future__ import annotations

from typing import Any

from meshhub import Registry, Verdict
from meshhub.model.sentences import translate_message


class GermanRegistry(Registry):
    """Registry of the built-in plug-ins."""

    def __init__(self) -> None:
        super().__init__(entry_points=False)
        self._sentences = self.texts("de").sentences

    def check(self, *args: Any, **options: Any) -> Verdict:  # type: ignore[override]
        """Check a model, and look up the German messages."""
        verdict = super().check(*args, **options)
        for finding in verdict.findings:
            message = translate_message(finding.message, self._sentences)
            assert message != finding.message, f"no German for {finding.message!r}"
        return verdict
