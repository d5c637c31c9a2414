"""Registry whose checks fail if a language lacks the message of a finding."""

from __future__ import annotations

from typing import Any

from meshhub import Registry, Verdict
from meshhub.model.sentences import translate_message
from meshhub.pipeline.catalogs import find_catalogs


class TranslatedRegistry(Registry):
    """Registry of the built-in plug-ins."""

    def __init__(self) -> None:
        super().__init__(entry_points=False)
        self._catalogs = {language: self.texts(language) for language in find_catalogs("meshhub")}

    def check(self, *args: Any, **options: Any) -> Verdict:  # type: ignore[override]
        """Check a model, and look up the messages in every language."""
        verdict = super().check(*args, **options)
        for finding in verdict.findings:
            for language, texts in self._catalogs.items():
                message = translate_message(finding.message, texts)
                assert message != finding.message, f"{language} has no {finding.message!r}"
        return verdict
