"""The `meshhub` program, also as `python -m meshhub`."""

from __future__ import annotations

import signal


def main() -> None:
    """Run the command line; Ctrl-C while it is imported ends the program without a traceback."""
    handler = signal.getsignal(signal.SIGINT)
    if handler is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from meshhub.cli import main as run

    signal.signal(signal.SIGINT, handler)
    run()


if __name__ == "__main__":
    main()
