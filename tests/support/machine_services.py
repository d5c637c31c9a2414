"""The service on Debian machines, set up and called as the guides of deployment show it."""

from __future__ import annotations

import io
import json
import zipfile

from guide_code import read_commands
from machines import CLONE, Machine

SERVICE = "http://127.0.0.1:8000"
ENVIRONMENT = "/etc/meshhub/environment"
HOST = "tools.example"


def create_certificate(machine: Machine) -> None:
    """Create a certificate of nginx."""
    machine.run(
        "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=tools.example "
        "-keyout /etc/ssl/private/tools.key -out /etc/ssl/tools.crt",
        "rm -f /etc/nginx/sites-enabled/default",
    )


def serve_by_nginx(machine: Machine, locations: str, upstream: str = "") -> None:
    """Serve locations with nginx, for the host `HOST`."""
    machine.write(
        "/etc/nginx/sites-enabled/meshhub",
        f"{upstream}\nserver {{\nlisten 443 ssl;\nserver_name {HOST};\nssl_certificate /etc/ssl/tools.crt;\n"
        f"ssl_certificate_key /etc/ssl/private/tools.key;\n{locations}}}\n",
    )
    machine.run("nginx -t", "systemctl restart nginx")


def run_meshhub(machine: Machine, command: str) -> str:
    """Run a command of meshhub as the user of the service, as the guide shows it."""
    *_, create = read_commands("deploy.md", "systemd")
    prefix, _, _ = create.partition("meshhub keys create")
    return machine.run(prefix + command)


def read_plan(machine: Machine, key: str, *options: str, service: str = SERVICE) -> str | int:
    """Return the plan of a key, or the status of the error."""
    status, body = machine.request(f"{service}/plan", "--header", f"X-Api-Key: {key}", *options)
    return json.loads(body)["plan"] if status == 200 else status


def read_id(key: str) -> str:
    """Return the public part of a key, by which commands and tables name it."""
    return "_".join(key.split("_")[:2])


def convert(machine: Machine, service: str, target: str, *options: str) -> bytes:
    """Convert the example, and return the result."""
    form = ("-F", f"file=@{CLONE}/examples/bracket.stl", "-F", f"target={target}", "--output", "/root/result")
    status, _ = machine.request(f"{service}/convert", *form, *options)
    result = machine.path("/root/result").read_bytes()
    assert status == 200, result
    return result


def submit(machine: Machine, service: str, *options: str) -> str:
    """Submit a job that converts the example to 3MF, and return its address."""
    form = ("-F", "kind=convert", "-F", f"file=@{CLONE}/examples/bracket.stl", "-F", "target=3mf")
    status, body = machine.request(f"{service}/jobs", *form, *options)
    assert status == 202, body
    return f"{service}/jobs/{json.loads(body)['id']}"


def is_3mf(content: bytes) -> bool:
    return "3D/3dmodel.model" in zipfile.ZipFile(io.BytesIO(content)).namelist()


def find_folder(machine: Machine) -> str:
    """Return the folder whose program the service runs."""
    command = "tr '\\0' ' ' < /proc/$(systemctl show --property MainPID --value meshhub)/cmdline"
    return machine.run(command).partition("/bin/")[0]


def resolve(address: str = "127.0.0.1") -> tuple[str, ...]:
    """Return the options of curl with which a request for `HOST` reaches a machine."""
    return ("--resolve", f"{HOST}:443:{address}")
