"""OFF file of a brick."""

from __future__ import annotations

BRICK = b"""OFF
8 6 12
0 0 0
10 0 0
10 20 0
0 20 0
0 0 30
10 0 30
10 20 30
0 20 30
4 3 2 1 0
4 4 5 6 7
4 0 1 5 4
4 1 2 6 5
4 2 3 7 6
4 3 0 4 7
"""
