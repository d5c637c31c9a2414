"""Names in files that do not state their encoding."""

from __future__ import annotations

import pytest

from meshhub.toolkit.encodings import decode_name, decode_names, find_encoding

NAMES = {
    "gb18030": ["装配体1", "姿态控制舱段", "海绵2", "内六角螺钉M5", "左侧板"],
    "cp932": ["部品", "六角穴付きボルト", "表面", "M3ネジ", "能力表"],
    "cp1252": ["Gehäuse", "FIXAÇÃO", "pièce créée", "Füße", "45°-Winkel Ø20"],
    "cp1251": ["Корпус", "ВТУЛКА", "Болт_М8", "ДЕТАЛЬ-01", "Вал"],
    "cp949": ["하우징", "볼트", "상판 조립품", "베어링", "너트"],
    "big5": ["螺絲", "上蓋", "齒輪", "電路板", "組合件"],
    "cp1250": ["Koło", "Część", "Śruba", "Łożysko", "Podkładka"],
    "cp1254": ["Parça", "Dişli", "Kapağı", "Taşıyıcı", "Gövde"],
    "cp1253": ["Κέλυφος", "Βίδα", "Άξονας", "Πλάκα", "ΒΑΣΗ"],
    "euc_jp": ["部品", "ボルト", "六角穴付きボルト", "ベース", "取付板"],
}
"""Names as CAD programs of different countries write them, by the encoding of their machines."""


@pytest.mark.parametrize("encoding", NAMES)
def test_the_names_of_a_file_are_decoded(encoding: str) -> None:
    names = NAMES[encoding]
    assert decode_names([name.encode(encoding) for name in names]) == names


@pytest.mark.parametrize(
    ("name", "encoding"),
    [
        ("Gehäuse", "cp1252"),
        ("GRÖßE", "cp1252"),
        ("LIFT-O-MAT®", "cp1252"),
        ("中国零件", "gb18030"),
        ("测试舱段1", "gb18030"),
        ("部品2", "cp932"),
        ("Ножки", "cp1251"),
        ("Крышка верхняя", "cp1251"),
    ],
)
def test_a_single_name_is_decoded(name: str, encoding: str) -> None:
    assert decode_names([name.encode(encoding)]) == [name]


def test_utf_8_and_ascii_stay() -> None:
    names = ["bracket", "Gehäuse", "中国零件", ""]
    assert decode_names([name.encode() for name in names]) == names
    assert find_encoding([b"bracket"]) == "utf-8"


def test_a_name_in_utf_8_among_others_is_read_as_utf_8() -> None:
    assert decode_names(["Gehäuse".encode(), "Gehäuse".encode("cp1252")]) == ["Gehäuse", "Gehäuse"]


def test_a_name_that_happens_to_be_valid_utf_8_has_the_encoding_of_the_file() -> None:
    names = ["铆钳", "螺母", "装配体"]
    assert names[0].encode("gb18030").decode("utf-8") != names[0]
    assert decode_names([name.encode("gb18030") for name in names]) == names


def test_a_name_that_the_encoding_of_the_file_lacks_is_kept() -> None:
    assert decode_name(b"part\xff", "gb18030") == "part\ufffd"


def test_a_name_that_is_cut_within_a_character_is_decoded_up_to_it() -> None:
    names = [name.encode("gb18030")[:9] for name in ("姿态控制舱段", "供给系统总成", "装配体1")]
    assert decode_names(names) == ["姿态控制\ufffd", "供给系统\ufffd", "装配体1"]
