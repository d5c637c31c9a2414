"""Profiles of the operator: files in one folder, by name; what could run, read or send something is left out.

An upload never brings a profile: settings of projects do not reach a slicer.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import platformdirs

from meshhub import InvalidOption, note

FOLDER_VARIABLE = "MESHHUB_SLICER_PROFILES"
"""Environment variable with the folder of the profiles; default: slicer-profiles in the user's configuration folder."""

MAX_BYTES = 4 << 20
"""Maximum bytes of a profile; complete ones have 50,000."""

MAX_FILES_COUNT = 50
"""Maximum files of a profile that is a folder."""

_NAME = re.compile(r"[A-Za-z0-9][\w .@+-]{0,80}", re.ASCII)

_UNSAFE_KEY = re.compile(
    r"post_?process.*|(.*_)?scripts?|.*print_?host.*|host_\w+|octoprint\w*|.*(api_?key|cafile|password|_user|url|_ip|_port)"
    r"|.*_(file|path|dir|texture|model|agent)|.*filename\w*|physical_printer\w*|.*upload\w*|.*camera\w*|load|save|output|datadir",
    re.IGNORECASE,
)
"""Keys that run a program, name a file, or belong to a network."""

_HARMLESS = frozenset({"printer_model"})
"""Keys that match, but only are names."""

_CODE_KEY = re.compile(r".*_?gcode(_\w+)?", re.IGNORECASE)

_HOST_COMMAND = re.compile(
    r"^(?:N\d+\s*)?[@!#/]|(?<![\w.])(?:M\s*0*(?:2[0-3]|2[89]|3\d|98|112|118|540|55[0-4]|58[5-9]|928|99[79])(?!\d)|"
    r"[MG]\s*[\[{]|RUN_|SAVE_CONFIG|SHELL|SDCARD_|RESTART|FIRMWARE_RESTART|UPDATE_|ACTION_|RESPOND)|"
    r"[}\]]\s*@|\{\s*\"|//\s*action:",
    re.IGNORECASE,
)
"""Line of G-code that speaks to a host, to its files or its network, instead of the printer; also text that is put
together when it is sliced, which could become such a line.
"""

_BREAK = re.compile(r'(\\[nr]|[\r\n]|";")')
"""End of a line: INI files write it as \\n, and lists of texts have one for each filament."""

_OTHER_LINE = re.compile(rb"^(?!G[0-3] )[^;\s][^\n]*", re.MULTILINE)
"""Line of G-code other than a move."""

_PRESET = re.compile(r"^\[\w+:.*\]\s*$", re.MULTILINE)
"""Header of a preset in a PrusaSlicer bundle; a bundle is not a configuration."""

Profile = dict[str, Any]


def read_profiles(name: str | None, ending: str) -> list[Profile]:
    """Return the safe settings of each file of a profile; a note names what is left out.

    Args:
        name: Name of a file in the folder, without its ending, or of a folder in it; None: no profile.
        ending: Ending of the slicer's files: ".ini" or ".json".
    Raises:
        InvalidOption: The profile does not exist or cannot be read.
    """
    removed: list[str] = []
    profiles = []
    for file in _find_files(name, ending) if name is not None else ():
        kept, left_out = keep_safe(_read(file))
        removed += left_out
        profiles.append(kept)
    if removed:
        names = ", ".join(dict.fromkeys(removed))
        note(
            "slicer_keys_removed", f"not used from the profile, as it could run or send something: {names}", keys=names
        )
    return profiles


def keep_safe(profile: Mapping[str, Any]) -> tuple[Profile, list[str]]:
    """Return a profile without what could run, read or send something, and the keys that were left out."""
    kept, removed = {}, []
    for key, value in profile.items():
        is_empty = value in ("", [], None, '""') or value == [""]
        if _UNSAFE_KEY.fullmatch(key.replace("-", "_")) and key not in _HARMLESS:
            if not is_empty:
                removed.append(key)
        elif _CODE_KEY.fullmatch(key):
            kept[key], is_changed = _clean(value)
            if is_changed:
                removed.append(key)
        else:
            kept[key] = value
    return kept, removed


def _clean(value: Any) -> tuple[Any, bool]:
    """Return G-code without lines for hosts, and whether there were some."""
    if isinstance(value, list):
        cleaned = [_clean(item) for item in value]
        return [text for text, _ in cleaned], any(is_changed for _, is_changed in cleaned)
    if not isinstance(value, str):
        return "", True
    # quotes around texts of a list stay
    quote = '"' if len(value) > 1 and value[0] == value[-1] == '"' else ""
    pieces = _BREAK.split(value.removeprefix(quote).removesuffix(quote))
    cleaned = ""
    for line, end in zip(pieces[::2], [*pieces[1::2], ""], strict=True):
        if not _is_for_host(line):
            cleaned += line + end
        elif end == '";"':
            cleaned += end
    return quote + cleaned + quote, len(cleaned) < sum(map(len, pieces))


def _is_for_host(line: str) -> bool:
    # PrusaSlicer drops single backslashes
    code = line.replace("\\", "").strip().partition(";")[0]
    return _HOST_COMMAND.search(code) is not None


def check_code(text: bytes) -> None:
    """Raise InvalidOption for sliced G-code with a line for a host, which the profile put together from parts."""
    for match in _OTHER_LINE.finditer(text):
        line = match[0].decode("utf-8", "replace")
        if _is_for_host(line):
            raise _reject(f"its G-code has {line.strip()[:40]!r}, a command for a host; remove it from the profile")


def read_number(settings: Mapping[str, Any], name: str, default: float = 0.0) -> float:
    """Return a setting as a finite number of at least 0. Raises InvalidOption."""
    text = settings.get(name) or default
    try:
        number = float(text)
    except (TypeError, ValueError):
        number = math.nan
    if not 0 <= number < math.inf:
        raise _reject(f"{name} must be a number, got {str(text)[:30]!r}; correct it in the profile")
    return number


def _find_files(name: str, ending: str) -> list[Path]:
    folder = find_folder()
    if not _NAME.fullmatch(name) or ".." in name:
        raise _reject(
            f"{name[:40]!r} is not a valid name; use that of a file in the folder of profiles, without its extension"
        )
    places = [folder / f"{name}{ending}", *sorted((folder / name).glob(f"*{ending}"))]
    files = [place for place in places if place.is_file()]
    if not files or len(files) > MAX_FILES_COUNT:
        present = sorted({file.stem for file in folder.glob("*") if file.suffix == ending or file.is_dir()})
        known = f"there are {', '.join(present)[:60]}" if present else f"put a file {ending} there ({FOLDER_VARIABLE})"
        raise _reject(f"the folder of profiles has no {name[:30]!r}; {known}")
    return files


def find_folder() -> Path:
    """Return the folder of the profiles."""
    return Path(os.environ.get(FOLDER_VARIABLE) or platformdirs.user_config_path("meshhub") / "slicer-profiles")


def _read(file: Path) -> Profile:
    try:
        with file.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise ValueError(f"it is longer than {MAX_BYTES >> 20} MiB")
        text = data.decode("utf-8")
        if _PRESET.search(text):
            raise ValueError("it is a bundle of presets; export the configuration of one printer")
        if file.suffix == ".json":
            profile = json.loads(text)
            if not isinstance(profile, dict):
                raise ValueError("it is not a JSON object")
            return profile
    except (OSError, ValueError, RecursionError) as error:
        raise _reject(f"profile {file.name[:40]!r} cannot be read: {str(error)[:60]}") from None
    pairs = (line.partition("=") for line in text.splitlines() if line.strip() and line.lstrip()[0] not in "#;[")
    return {key.strip(): value.strip() for key, separator, value in pairs if separator}


def _reject(problem: str) -> InvalidOption:
    return InvalidOption(f"option '{{slicer_profile}}': {problem}", options=("slicer_profile",))
