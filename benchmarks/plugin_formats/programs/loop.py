"""Let a module of this folder read files: python loop.py MODULE [WORD]; its input is lines of file and result."""

import importlib
import sys

module = importlib.import_module(sys.argv[1])
for line in sys.stdin:
    source, target = line.rstrip("\n").split("\t")
    try:
        module.read(source, target, *sys.argv[2:])
    except Exception as error:
        # no result is an answer, and the next file follows
        print(type(error).__name__, error, file=sys.stderr)
    print(f"\n{target}", flush=True)
