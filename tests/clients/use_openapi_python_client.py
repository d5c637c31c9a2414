"""Use the client that openapi-python-client generated. Arguments: URL, API key, folder of the models, output folder."""

import json
import sys
from io import BytesIO
from pathlib import Path

from meshhub_client import AuthenticatedClient, Client
from meshhub_client.api.conversion import convert, convert_many, inspect
from meshhub_client.api.description import plan, supported
from meshhub_client.api.monitoring import health_ready
from meshhub_client.models import ConvertBody, ConvertManyBody, InspectBody
from meshhub_client.types import File

url, key, models, output = sys.argv[1], sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4])
client = Client(base_url=url, raise_on_unexpected_status=True)
customer = AuthenticatedClient(base_url=url, token=key, prefix="", auth_header_name="X-Api-Key")


def upload(name: str) -> File:
    return File(payload=BytesIO((models / name).read_bytes()), file_name=name)


converted = convert.sync_detailed(
    client=client, body=ConvertBody(file=upload("bracket.stl"), target="3mf", repair=True, target_height_mm=40.5)
)
(output / "bracket.3mf").write_bytes(converted.parsed.payload.read())
files = [upload("bracket.stl"), upload("bracket-clean.stl")]
parts = convert_many.sync(client=client, body=ConvertManyBody(files=files, target="ply", place_on_bed=True))
(output / "parts.zip").write_bytes(parts.payload.read())
inspection = inspect.sync(client=client, body=InspectBody(file=upload("bracket-clean.stl")))
failed = convert.sync_detailed(client=client, body=ConvertBody(file=upload("bracket.stl"), target="nothing"))
result = {
    "report": json.loads(converted.headers["X-Meshhub-Report"]),
    "size_mm": inspection.model.size_mm,
    "watertight": inspection.model.watertight,
    "unit": inspection.source.frame.unit,
    "error": [failed.status_code, failed.parsed.error_code, failed.parsed.request_id],
    "plans": [plan.sync(client=client).plan, plan.sync(client=customer).plan],
    "label": supported.sync(client=client).formats["3mf"].label,
    "health": health_ready.sync(client=client).status,
}
(output / "result.json").write_text(json.dumps(result))
