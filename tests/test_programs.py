"""Where programs are searched."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from meshhub.toolkit.programs import find_program


def test_windows_finds_no_program_in_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    downloads, installed = tmp_path / "downloads", tmp_path / "programs"
    for folder in (downloads, installed):
        folder.mkdir()
        (folder / "chrome.exe").write_bytes(b"MZ")
    monkeypatch.chdir(downloads)
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setattr("os.get_exec_path", lambda: ["", ".", str(installed)])
    assert find_program("chrome") == str(installed / "chrome.exe")
    monkeypatch.setattr("os.get_exec_path", lambda: ["", "."])
    assert find_program("chrome") is None
