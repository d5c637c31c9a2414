"""Large models, whose texts and archives are made by two threads: the bytes and errors are those of one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import trimesh

from meshhub import Mesh, Part, Registry, Scene, UnreadableFile
from support.processor_cores import limit_cores


@pytest.fixture(scope="module")
def ball() -> Scene:
    """A ball of 82,000 faces with a value of its own in each coordinate."""
    mesh = trimesh.creation.icosphere(subdivisions=6, radius=30)
    vertices = mesh.vertices + np.random.default_rng(0).normal(scale=1e-3, size=mesh.vertices.shape)
    return Scene(meshes=(Mesh(vertices, mesh.faces.astype(np.int32)),), parts=(Part(0, name="ball"),))


@pytest.mark.parametrize(
    ("target", "options"),
    [("obj", {}), ("3mf", {}), ("stl", {"stl_ascii": True}), ("ply", {"ply_ascii": True})],
)
def test_two_threads_write_and_read_the_bytes_of_one(
    ball: Scene, target: str, options: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    contents, scenes = [], []
    with Registry(entry_points=False) as registry:
        for count in (1, 2):
            limit_cores(monkeypatch, count)
            path = tmp_path / f"ball-{count}.{target}"
            registry.write(ball, path, **options)
            contents.append(path.read_bytes())
            scenes.append(registry.read(path))
    assert contents[0] == contents[1]
    for scene in scenes:
        assert scene.face_count == ball.face_count
        np.testing.assert_allclose(sorted_corners(scene), sorted_corners(ball), atol=1e-4)


def sorted_corners(scene: Scene) -> np.ndarray:
    mesh = scene.meshes[0]
    return np.sort(mesh.vertices[mesh.faces].reshape(-1, 9), axis=0)


@pytest.mark.parametrize("line", [3, 160_000, 199_999])
def test_errors_name_the_line_in_either_half(line: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limit_cores(monkeypatch, 2)
    rows = [f"v {number} 0.25 {number % 7}" for number in range(200_000)]
    rows[line - 1] = "v 1 2 three"
    path = tmp_path / "bad.obj"
    path.write_text("\n".join([*rows, "f 1 2 3", ""]))
    with (
        Registry(entry_points=False) as registry,
        pytest.raises(UnreadableFile, match=rf"line {line:,}\b|line {line}\b"),
    ):
        registry.read(path)
