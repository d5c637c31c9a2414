"""Use the client that openapi-generator's `python` generated. Arguments: API key, folder of the models, output folder.

The address of the service comes from the document.
"""

import json
import sys
from decimal import Decimal
from pathlib import Path

from meshhub_client import ApiClient, ApiException, Configuration, ConversionApi, DescriptionApi, MonitoringApi

key, models, output = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
conversion, description = ConversionApi(), DescriptionApi()
customer = DescriptionApi(ApiClient(Configuration(api_key={"key": key})))


def upload(name: str) -> tuple[str, bytes]:
    return name, (models / name).read_bytes()


height = Decimal("40.5")
converted = conversion.convert_with_http_info(upload("bracket.stl"), "3mf", repair=True, target_height_mm=height)
(output / "bracket.3mf").write_bytes(converted.data)
parts = conversion.convert_many([upload("bracket.stl"), upload("bracket-clean.stl")], "ply", place_on_bed=True)
(output / "parts.zip").write_bytes(parts)
inspection = conversion.inspect(upload("bracket-clean.stl"))
try:
    conversion.convert(upload("bracket.stl"), "nothing")
except ApiException as exception:
    error = [exception.status, exception.data.error_code, exception.data.request_id]
result = {
    "report": json.loads(converted.headers["x-meshhub-report"]),
    "size_mm": [float(length) for length in inspection.model.size_mm],
    "watertight": inspection.model.watertight,
    "unit": inspection.source.frame.unit,
    "error": error,
    "plans": [description.plan().plan, customer.plan().plan],
    "label": description.supported().formats["3mf"].label,
    "health": MonitoringApi().health_ready().status,
}
(output / "result.json").write_text(json.dumps(result))
