"""Conditions of profiles of PrusaSlicer: `printer_model=="MINI" and nozzle_diameter[0]==0.4`.

With the operators of Python they are expressions of Python, of which only these few kinds are evaluated.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping

_TOKEN = re.compile(r'"[^"]*"|/(?:[^/\\]|\\.)*/|=~|!~|&&|\|\||!(?!=)')

_SPELLINGS = {"=~": "@", "!~": "%", "&&": " and ", "||": " or ", "!": " not "}

_MAX_PATTERN_LENGTH = 200
"""Characters of a regular expression; those of profiles have up to 40."""

_COMPARISONS: dict[type[ast.cmpop], Callable[[float, float], bool]] = {
    ast.Lt: operator.lt,
    ast.Gt: operator.gt,
    ast.LtE: operator.le,
    ast.GtE: operator.ge,
}


def holds(condition: str, settings: Mapping[str, str]) -> bool:
    """Return whether a condition is true for settings; an empty one is, and one that cannot be read is not."""
    if not condition.strip():
        return True
    try:
        tree = ast.parse(_TOKEN.sub(_spell, condition).strip(), mode="eval")
        return _is_true(tree.body, settings)
    except (SyntaxError, ValueError, IndexError, RecursionError, re.error):
        return False


def _spell(match: re.Match[str]) -> str:
    token = match[0]
    return _SPELLINGS.get(token) or repr(token[1:-1])


def _is_true(node: ast.expr, settings: Mapping[str, str]) -> bool:
    """Return whether an expression is true. Raises ValueError if conditions have no such expression."""
    match node:
        case ast.BoolOp(op=ast.And()):
            return all(_is_true(value, settings) for value in node.values)
        case ast.BoolOp():
            return any(_is_true(value, settings) for value in node.values)
        case ast.UnaryOp(op=ast.Not()):
            return not _is_true(node.operand, settings)
        case ast.BinOp(op=ast.MatMult() | ast.Mod()):
            pattern = _read(node.right, settings)[:_MAX_PATTERN_LENGTH]
            is_match = re.fullmatch(pattern, _read(node.left, settings), re.DOTALL) is not None
            return is_match is isinstance(node.op, ast.MatMult)
        case ast.Compare(ops=[ast.Eq() | ast.NotEq()]):
            is_equal = _are_equal(_read(node.left, settings), _read(node.comparators[0], settings))
            return is_equal is isinstance(node.ops[0], ast.Eq)
        case ast.Compare(ops=[comparison]) if type(comparison) in _COMPARISONS:
            left, right = (float(_read(side, settings)) for side in (node.left, node.comparators[0]))
            return _COMPARISONS[type(comparison)](left, right)
    return _read(node, settings) not in ("", "0", "false")


def _read(node: ast.expr, settings: Mapping[str, str]) -> str:
    """Return the text of a setting or of a constant."""
    match node:
        case ast.Constant(value):
            return str(value)
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value)):
            return f"-{value}"
        case ast.Name("num_extruders"):
            return str(len(settings.get("nozzle_diameter", "").split(",")))
        case ast.Name(name):
            return settings.get(name, "").strip().strip('"')
        case ast.Subscript(value=ast.Name(name), slice=ast.Constant(int(index))):
            return settings.get(name, "").strip().strip('"').split(",")[index]
    raise ValueError("a condition has another expression")


def _are_equal(left: str, right: str) -> bool:
    try:
        return float(left) == float(right)
    except ValueError:
        return left == right
