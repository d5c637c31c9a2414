"""Print the OpenAPI document of the built-in plug-ins, from which `npm run build` generates types."""

from __future__ import annotations

import json
import sys

from meshhub import Registry
from meshhub.http.openapi import document

json.dump(document(Registry(entry_points=False)), sys.stdout)
