"""`python -m meshhub`."""

from __future__ import annotations

from meshhub.cli import main

if __name__ == "__main__":
    main()
