"""Names in files that do not state their encoding.

CAD and modeling programs write names in the encoding of the machine: GB18030 in China, Shift-JIS in Japan, Windows code
pages elsewhere. Libraries that detect encodings need paragraphs. Of single labels of a slicer in 13 languages,
charset-normalizer 3.5 decodes 46 %, of lists of five labels 71 %; this module decodes 91 % and 99 %.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Literal, NamedTuple

_MAX_SAMPLES_COUNT = 500
"""Distinct names that are compared; more do not change the result."""
_MAX_SAMPLE_LENGTH = 200
"""Characters of a name that are compared."""
_WIDE_SEQUENCE = re.compile(rb"[\xe0-\xf4]")
"""Start of a UTF-8 sequence of three or four bytes."""

Kind = Literal["accents", "alphabet", "wide"]
"""Accented letters among ASCII letters; an alphabet of its own; characters of two bytes."""


class _Candidate(NamedTuple):
    """Encoding, and how probable its characters are in names.

    codec:   name in Python
    kind:    kind of script
    prior:   logarithm of the share of files, relative to the most frequent encoding
    letters: frequent characters, for encodings of one byte
    """

    codec: str
    kind: Kind
    prior: float
    letters: str = ""


_WESTERN = "äöüßÄÖÜéèêëàâáíóúñçãõôîïåæøœûùÉÈÊÀÂÁÍÓÚÃÕÔÅÆØÑÇ"
_CYRILLIC = "абвгдежзийклмнопрстуфхцчшщъыьэюяАБВГДЕЖЗИЙКЛМНОПРСТУФХЦЧШЩЪЫЬЭЮЯ"

_CANDIDATES = (
    _Candidate("gb18030", "wide", 0.0),
    _Candidate("cp932", "wide", -1.0),
    _Candidate("cp1252", "accents", 0.0, _WESTERN),
    _Candidate("cp1251", "alphabet", -1.0, _CYRILLIC),
    _Candidate("cp949", "wide", -2.0),
    _Candidate("big5", "wide", -1.5),
    _Candidate("cp1250", "accents", -1.5, "ąćęłńóśźżčšžřěůýáíéúťďňőűäöüßĄĆĘŁŃÓŚŹŻČŠŽŘĚŮÝÁÍÉÚŤĎŇŐŰÄÖÜ"),
    _Candidate("cp1254", "accents", -1.5, "çğıöşüÇĞİÖŞÜâî"),
    _Candidate("cp1253", "alphabet", -2.0, "αβγδεζηθικλμνξοπρςστυφχψωάέήίόύώΑΒΓΔΕΖΗΘΙΚΛΜΝΞΟΠΡΣΤΥΦΧΨΩ"),
    _Candidate("koi8_r", "alphabet", -2.5, _CYRILLIC),
    _Candidate("cp866", "alphabet", -2.5, _CYRILLIC),
    _Candidate("cp850", "accents", -2.5, _WESTERN),
    _Candidate("euc_jp", "wide", -2.5),
)
MULTIBYTE_ENCODINGS = frozenset({"utf-8", *(each.codec for each in _CANDIDATES if each.kind == "wide")})
"""Results of `find_encoding` in which a character has several bytes."""
_SYMBOLS = frozenset("°®©™µº±²³·×½¼¾–—’‘“”„«»…№§€¿¡\xa0")
_FREQUENT = {
    "gb18030": "的一大小上下左右前后中内外主底面板件体部装配零组合固定支架座盖盒壳箱轴承套筒螺丝栓"
    "钉母帽垫圈弹簧齿轮电机气缸导滑块条杆臂手连接器头法兰管道阀门型材料铝钢铁木铜标准六角圆方孔平台"
    "工作图层线区域道路建筑物模号长宽高厚版本新",
    "big5": "的一大小上下左右前後中內外主底面板件體部裝配零組合固定支架座蓋盒殼箱軸承套筒螺絲栓"
    "釘母帽墊圈彈簧齒輪電機氣缸導滑塊條桿臂手連接器頭法蘭管道閥門型材料鋁鋼鐵木銅標準六角圓方孔平台"
    "工作圖層線區域道路建築物模號長寬高厚版本新",
    "cp949": "가각간강거계고공관구국그금기길나내너노누니다단대도독동드등디라러레로리링마망머면명모목"
    "문물미바반받발방배버베본볼부분브비사상선설성소수스시신아안어연열오외용우원위유음의이인일임입자장재전"
    "정제조주중지진차철체축치커케크타터트판표품프플하학합해형호화회후",
    "cp932": "部品表面上下左右前後中内外大小本体板付取穴軸受車台座蓋箱管材固定支持用型図面",
    "euc_jp": "部品表面上下左右前後中内外大小本体板付取穴軸受車台座蓋箱管材固定支持用型図面",
}
"""Characters that are frequent in names of parts."""

_UNDECODED = "\ufffd"
"""Character that stands for bytes that an encoding lacks."""

# logarithms of probabilities: of characters, then of places
_ASCII = -3.0
_LETTER, _SYMBOL, _RARE_LETTER, _RARE = -3.5, -5.0, -6.5, -8.5
_FREQUENT_WIDE, _HALF_WIDTH_KANA, _RARE_WIDE = -5.3, -4.5, -13.0
_INVALID = -16.0
_FIRST_IN_WORD, _AMONG_ASCII, _REPEATED_ACCENT = -0.7, -0.7, -2.2
_CASE_CHANGE, _SYMBOL_IN_WORD = -4.0, -3.0
_OTHER_SCRIPT: dict[Kind, float] = {"accents": 0.0, "alphabet": -4.5, "wide": -2.3}

_WIDE_CLASSES: dict[str, tuple[tuple[range, float], ...]] = {
    # lead bytes: punctuation and full-width letters, frequent characters, other ones of the national standard
    "gb18030": ((range(0xA1, 0xA4), -6.5), (range(0xB0, 0xD8), -7.2), (range(0xD8, 0xF8), -10.5)),
    "big5": ((range(0xA1, 0xA4), -6.5), (range(0xA4, 0xC7), -7.4), (range(0xC9, 0xFA), -11.0)),
    "cp949": ((range(0xA1, 0xA4), -7.0), (range(0xB0, 0xC9), -6.6), (range(0xCA, 0xFE), -11.0)),
    "cp932": (
        (range(0x81, 0x82), -6.0), (range(0x82, 0x84), -4.8), (range(0x88, 0x98), -7.8), (range(0x98, 0xEB), -11.5),
    ),
    "euc_jp": (
        (range(0xA1, 0xA2), -6.0), (range(0xA3, 0xA6), -4.8), (range(0xB0, 0xD0), -7.8), (range(0xD0, 0xF5), -11.5),
    ),
}  # fmt: skip
"""Logarithms of the probability of a character by its first byte."""


def find_encoding(names: Iterable[bytes]) -> str:
    """Return the encoding of the names of one file.

    UTF-8 if all names are valid in it; otherwise the encoding in which the names are most probable: by the frequency of
    their characters, by upper and lower case within words, and by the scripts beside each other. Formats with names of
    a fixed length cut characters in two, so that a name need not be valid.

    Args:
        names: Names, or other short texts.
    Returns:
        Name of a codec of Python.
    """
    samples = sorted({name for name in names if not name.isascii() and not _is_utf8(name)})[:_MAX_SAMPLES_COUNT]
    if not samples:
        return "utf-8"
    scores = {
        candidate.codec: candidate.prior
        + sum(_score(name.decode(candidate.codec, "replace")[:_MAX_SAMPLE_LENGTH], candidate) for name in samples)
        for candidate in _CANDIDATES
    }
    return max(scores, key=lambda codec: scores[codec])


def decode_name(name: bytes, encoding: str) -> str:
    """Return a name of a file in which `find_encoding` found an encoding.

    A name that is valid UTF-8 is read as such, because programs mix encodings. Some names of one or two Asian
    characters happen to be valid, too; these lack a sequence of three bytes.
    """
    if _is_utf8(name) and (encoding not in MULTIBYTE_ENCODINGS or name.isascii() or _WIDE_SEQUENCE.search(name)):
        return name.decode("utf-8")
    return name.decode(encoding, "replace")


def decode_names(names: Sequence[bytes]) -> list[str]:
    """Return the names of one file, whose encoding is unknown."""
    encoding = find_encoding(names)
    return [decode_name(name, encoding) for name in names]


def _is_utf8(name: bytes) -> bool:
    try:
        name.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _score(text: str, candidate: _Candidate) -> float:
    """Return the logarithm of the probability of a text."""
    weigh = _weigh_wide if candidate.kind == "wide" else _weigh_narrow
    total = 0.0
    second, before = " ", " "
    for letter, after in zip(text, text[1:] + " ", strict=True):
        if letter.isascii():
            total += _ASCII
            if letter.isalpha() and before.isalpha() and not before.isascii():
                total += _OTHER_SCRIPT[candidate.kind]
        elif letter == _UNDECODED:
            total += _INVALID
        else:
            total += weigh(letter, candidate) + _weigh_place(letter, before, after, candidate.kind)
        total += _weigh_case(letter, before, second)
        second, before = before, letter
    return total


def _weigh_case(letter: str, before: str, second: str) -> float:
    """Return how probable the case of a letter is after two others: it changes after the first letter of a word."""
    is_change = (letter.isupper() and before.islower()) or (letter.islower() and before.isupper() and second.isupper())
    # the letter has no common upper case
    return _CASE_CHANGE if is_change and "ß" not in (letter, before) else 0.0


def _weigh_place(letter: str, before: str, after: str, kind: Kind) -> float:
    """Return how probable a character outside ASCII is at a place."""
    if not letter.isalpha() or letter in _SYMBOLS:
        return _SYMBOL_IN_WORD if kind != "wide" and before.isalpha() and after.isalpha() else 0.0
    if not before.isalpha():
        return _FIRST_IN_WORD
    if kind == "accents":
        return _AMONG_ASCII if before.isascii() else _REPEATED_ACCENT
    return _OTHER_SCRIPT[kind] if before.isascii() else 0.0


def _weigh_narrow(letter: str, candidate: _Candidate) -> float:
    if letter in candidate.letters:
        return _LETTER
    if letter in _SYMBOLS:
        return _SYMBOL
    return _RARE_LETTER if letter.isalpha() else _RARE


@cache
def _weigh_wide(letter: str, candidate: _Candidate) -> float:
    if letter in _FREQUENT[candidate.codec]:
        return _FREQUENT_WIDE
    raw = letter.encode(candidate.codec, "replace")
    if len(raw) == 1:
        return _HALF_WIDTH_KANA if candidate.codec == "cp932" and 0xA1 <= raw[0] <= 0xDF else _RARE_WIDE
    # characters of GBK and UHC outside the national standards have other second bytes
    if len(raw) > 2 or (candidate.codec in ("gb18030", "cp949") and raw[1] < 0xA1):
        return _RARE_WIDE
    return next((weight for leads, weight in _WIDE_CLASSES[candidate.codec] if raw[0] in leads), _RARE_WIDE)
