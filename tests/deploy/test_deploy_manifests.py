"""Manifests of Kubernetes and Docker Compose: valid, hardened, and in accordance with the service."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from meshhub.service.settings import FILE, NAMES, PREFIX, Settings

yaml = pytest.importorskip("yaml")
jsonschema = pytest.importorskip("jsonschema")
kubernetes_validate = pytest.importorskip("kubernetes_validate")
pytest.importorskip("check_jsonschema")

pytestmark = pytest.mark.once

DEPLOY = Path(__file__).parents[2] / "deploy"
BASE = sorted(path for path in (DEPLOY / "kubernetes" / "base").glob("*.yaml") if path.stem != "kustomization")
COMPOSE = DEPLOY / "compose" / "compose.yaml"
VERSIONS = ("1.30", "1.33")
"""Versions of Kubernetes: one that is out of support, and a current one."""


def read_documents(text: str) -> list[Any]:
    return [document for document in yaml.safe_load_all(text) if document]


def read_base() -> list[Any]:
    return [document for path in BASE for document in read_documents(path.read_text(encoding="utf-8"))]


def read_pods() -> Iterator[tuple[str, Any]]:
    """Yield the names and the pods of the base."""
    for document in read_base():
        if document["kind"] in ("Deployment", "Job"):
            yield document["metadata"]["name"], document["spec"]["template"]["spec"]


PODS = dict(read_pods())


def read_compose() -> Any:
    return yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("path", BASE, ids=lambda path: path.stem)
def test_the_base_fits_the_schema_of_kubernetes(path: Path, version: str) -> None:
    documents = read_documents(path.read_text(encoding="utf-8"))
    assert documents
    for document in documents:
        kubernetes_validate.validate(document, version, strict=True)


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
@pytest.mark.parametrize("name", ["base", "example"])
def test_kustomize_builds_valid_manifests(name: str) -> None:
    command = ["kubectl", "kustomize", str(DEPLOY / "kubernetes" / name)]
    documents = read_documents(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    for document in documents:
        if document["apiVersion"].startswith("keda.sh/"):
            assert document["spec"]["scaleTargetRef"]["name"] in PODS
        else:
            kubernetes_validate.validate(document, VERSIONS[-1], strict=True)
    scaled = [
        document["spec"]["scaleTargetRef"]["name"]
        for document in documents
        if document["kind"] in ("HorizontalPodAutoscaler", "ScaledObject")
    ]
    # two autoscalers of one deployment would fight
    assert sorted(scaled) == ["serve", "work"]


def test_the_compose_file_fits_its_schema() -> None:
    vendored = files("check_jsonschema.builtin_schemas.vendor") / "compose-spec.json"
    jsonschema.validate(read_compose(), json.loads(vendored.read_text(encoding="utf-8")))


@pytest.mark.parametrize("name", PODS)
def test_pods_run_without_rights(name: str) -> None:
    pod = PODS[name]
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"]["type"] == "RuntimeDefault"
    for container in pod["containers"]:
        context = container["securityContext"]
        assert context["allowPrivilegeEscalation"] is False
        assert context["readOnlyRootFilesystem"] is True
        assert context["capabilities"]["drop"] == ["ALL"]
        assert container["resources"]["requests"].keys() >= {"cpu", "memory"}
        assert "memory" in container["resources"]["limits"]


@pytest.mark.parametrize("name", ["serve", "work"])
def test_pods_have_probes_and_time_to_drain(name: str) -> None:
    (container,) = PODS[name]["containers"]
    assert container["livenessProbe"]["httpGet"]["path"] == "/health/live"
    for probe in ("startupProbe", "readinessProbe"):
        assert container[probe]["httpGet"]["path"] == "/health/ready"
    ports = {port["name"] for port in container["ports"]}
    assert container["readinessProbe"]["httpGet"]["port"] in ports
    variables = {entry["name"]: entry["value"] for entry in container["env"]}
    shutdown_s = float(variables.get("MESHHUB_SHUTDOWN_SECONDS", Settings().shutdown_seconds))
    pause = container.get("lifecycle", {}).get("preStop", {}).get("exec", {}).get("command", ["", "0"])
    assert PODS[name]["terminationGracePeriodSeconds"] >= shutdown_s + float(pause[1]) + 10


def test_compose_services_have_time_to_drain() -> None:
    services = read_compose()["services"]
    for name in ("serve-1", "serve-2", "work"):
        assert int(services[name]["stop_grace_period"].removesuffix("s")) >= Settings().shutdown_seconds + 10
        assert services[name]["read_only"] is True


def test_each_budget_and_policy_selects_pods() -> None:
    for document in read_base():
        spec = document.get("spec", {})
        selector = {"PodDisruptionBudget": spec.get("selector"), "NetworkPolicy": spec.get("podSelector")}
        chosen = selector.get(document["kind"])
        if chosen is not None:
            names = set(chosen.get("matchLabels", {}).values())
            names |= {value for rule in chosen.get("matchExpressions", []) for value in rule["values"]}
            assert names and names <= PODS.keys()


def test_manifests_use_only_known_settings() -> None:
    variables = {FILE, *(PREFIX + name.upper() for name in NAMES)}
    for path in (*DEPLOY.glob("compose/*"), *DEPLOY.glob("kubernetes/*/*")):
        assert set(re.findall(r"\bMESHHUB_[A-Z_]+", path.read_text(encoding="utf-8"))) <= variables, path


def test_the_proxy_serves_both_services_and_no_metrics(tmp_path: Path) -> None:
    text = (DEPLOY / "compose" / "nginx.conf").read_text(encoding="utf-8")
    servers = re.findall(r"server (\S+):8000;", text)
    assert {name for name in read_compose()["services"] if name.startswith("serve-")} == set(servers)
    assert re.search(r"location /metrics \{ return 404; \}", text)
    if shutil.which("nginx") is None:
        pytest.skip("nginx is not installed")
    # their names exist only in the network of Compose
    config = tmp_path / "nginx.conf"
    config.write_text(re.sub(r"server serve-\d:", "server 127.0.0.1:", text).replace("/tmp/", f"{tmp_path}/"))
    result = subprocess.run(["nginx", "-t", "-c", str(config)], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
