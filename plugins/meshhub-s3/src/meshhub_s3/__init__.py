"""Storage for addresses s3://bucket/key in S3 and S3-compatible stores: declaration. `objects` does the work."""

from __future__ import annotations

from meshhub import Storage, hookimpl

MESHHUB_API = "1.0"


@hookimpl
def meshhub_storages() -> list[Storage]:
    """Declare the storage; the operator lists its buckets in MESHHUB_S3_BUCKETS."""
    return [Storage(scheme="s3", run="meshhub_s3.objects:open_object", needs=("obstore",), install="meshhub-s3")]
