"""Contract of writers."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from meshhub.errors import ConversionFailed
from meshhub.model.capabilities import FEATURES, Feature, Writer
from meshhub.model.options import decode
from meshhub.model.scene import DESCRIPTIONS, Scene
from meshhub.model.source import Target
from meshhub.pipeline.declarations import Declared, load
from meshhub.testing import conversions, sample_scenes
from meshhub.testing.child_process import fingerprint_in_children, try_in_child
from meshhub.testing.child_tasks import fingerprint, serialize
from meshhub.testing.comparison import describe_difference, part_groups, part_names
from meshhub.testing.contract import Contract
from meshhub.testing.guards import fail_on_exit_or_timeout, forbid_side_effects, require
from meshhub.testing.memory_format import SceneSource
from meshhub.toolkit.geometry import to_frame


class WriterContract(Contract[Writer]):
    """Tests that each writer must pass.

    Written files are read back by the format's own reader. For a format without a reader, override `read_back`.

    Attributes:
        format_id: Id of the format.
        scenes: More scenes to write, in millimeters, Z up.
    """

    format_id: ClassVar[str]
    scenes: ClassVar[Sequence[Scene]] = ()

    @property
    def candidates(self) -> Iterable[Declared[Writer]]:
        """Writers of the format."""
        writers = self.registry.declarations.writers
        return (writer for writer in writers if writer.capability.format.id == self.format_id)

    @property
    def what(self) -> str:
        """Name of the writer in failure messages."""
        return f"a writer of {self.format_id!r}"

    @property
    def owner(self) -> str:
        """Id of the format."""
        return self.format_id

    @property
    def carried_back(self) -> frozenset[Feature] | None:
        """Features that the format's own reader declares; None without a reader."""
        declared = self.registry.declarations.readers
        readers = [reader for reader in declared if reader.capability.format.id == self.format_id]
        return next((reader.capability.carries for reader in readers if not reader.missing), None)

    def write(self, scene: Scene, name: str = "model") -> Target:
        """Write a scene (millimeters, Z up) to a file in memory."""
        return conversions.write(self.registry, self.format_id, scene, self.options, name)

    def read_back(self, target: Target) -> Scene:
        """Read a written file to a scene in millimeters, Z up; skip the test if the format has no reader."""
        if self.carried_back is None:
            pytest.skip(f"no reader of {self.format_id!r} is registered; override `read_back`")
        source = conversions.as_source(target, self.capability.format.extensions[0])
        return conversions.read(self.registry, self.format_id, source, {})[0]

    def _all_scenes(self) -> list[Scene]:
        return [
            sample_scenes.brick(),
            sample_scenes.twice(),
            sample_scenes.mirrored(),
            # the scenes of the other features are equal to these
            *(sample_scenes.FEATURE_SCENES[feature] for feature in ("names", "normals", "colors", "materials", "uv")),
            sample_scenes.full(),
            *self.scenes,
        ]

    def _require_round_trip(self, scene: Scene, description: str) -> None:
        """Fail if the shape of a scene differs after writing and reading it."""
        self.require_available()
        difference = describe_difference(scene, self.read_back(self.write(scene)))
        require(not difference, f"{description}: {difference}")

    def test_a_brick_keeps_its_size_and_orientation(self) -> None:
        """Test that a box of 10 × 20 × 30 mm keeps its position, up direction and outward orientation."""
        self._require_round_trip(sample_scenes.brick(), "the brick of 10 × 20 × 30")

    def test_a_part_placed_twice_stays_two(self) -> None:
        """Test that both instances are written, each in its place."""
        self._require_round_trip(sample_scenes.twice(), "a part placed twice")

    def test_a_mirrored_part_is_not_inside_out(self) -> None:
        """Test that the faces of a part with a mirroring transform are reversed, so that they face outward."""
        self._require_round_trip(sample_scenes.mirrored(), "a mirrored part")

    @pytest.mark.parametrize("feature", sorted(FEATURES))
    def test_a_carried_feature_survives(self, feature: Feature) -> None:
        """Test that a feature that both the writer and the format's reader declare survives unchanged."""
        if feature not in self.capability.carries:
            pytest.skip(f"{self.what} does not declare {feature}")
        scene = sample_scenes.FEATURE_SCENES[feature]
        target = self.write(scene)
        has_own_read_back = type(self).read_back is not WriterContract.read_back
        if feature not in (self.carried_back or ()) and not has_own_read_back:
            pytest.skip(f"no reader of {self.format_id!r} declares {feature}")
        result = self.read_back(target)
        difference = describe_difference(scene, result, feature)
        require(not difference, f"{feature}: {difference}")
        if feature == "names":
            actual, expected = part_names(result), part_names(scene)
            require(actual == expected, f"the parts are named {actual} instead of {expected}")
        if feature == "hierarchy":
            groups, expected_groups = part_groups(result), part_groups(scene)
            require(groups == expected_groups, f"the groups are {groups} instead of {expected_groups}")
        if feature == "metadata":
            texts = [{name: each.metadata.get(name) for name in DESCRIPTIONS} for each in (result, scene)]
            require(texts[0] == texts[1], f"the descriptions are {texts[0]} instead of {texts[1]}")
        if feature == "instances":
            mesh_count = len({part.mesh for part in result.parts})
            require(mesh_count < len(result.parts), "each instance has a separate mesh")

    def test_what_is_not_carried_does_no_harm(self) -> None:
        """Test that a scene with all features keeps its triangles."""
        for scene in (sample_scenes.full(), *self.scenes):
            self._require_round_trip(scene, "a scene with all features")

    def test_bytes_are_the_same_each_time(self) -> None:
        """Test that a scene gives the same bytes twice: in other processes, on another day, and under another name."""
        self.require_available()
        chain_runs = []
        for scene in self._all_scenes():
            source = SceneSource(scene)
            chain_runs.append((conversions.resolve_chain(self.registry, source, self.format_id, self.options), source))
        first, second = ([conversions.fingerprint_guarded(each) for each in chain_runs] for _ in range(2))
        require(first == second, f"{self.what} writes other bytes the second time")
        for in_child in fingerprint_in_children(chain_runs):
            require(first == in_child, f"{self.what} writes other bytes in another process")
        renamed = fingerprint(self.write(self._all_scenes()[0], "secret-customer.name"))
        require(renamed == first[0], f"{self.what} writes the name of the file into it")

    def test_a_folder_gets_the_same_bytes_as_memory(self) -> None:
        """Test that a target folder gets the same files as a target in memory, and no others."""
        self.require_available()
        with tempfile.TemporaryDirectory() as folder:
            source, target = SceneSource(sample_scenes.full()), Target("model", folder=Path(folder))
            chain = conversions.resolve_chain(self.registry, source, self.format_id, self.options)
            conversions.run_guarded(self.registry, (chain, source), target)
            files = sorted(path.name for path in Path(folder).iterdir())
            names = sorted(target.names)
            require(files == names, f"{self.what} leaves {files} in the folder, but its target lists {names}")
            in_memory = fingerprint(self.write(sample_scenes.full()))
            require(fingerprint(target) == in_memory, f"{self.what} writes other bytes into a folder")

    def test_the_scene_stays_untouched(self) -> None:
        """Test that writing changes no byte of the scene's arrays."""
        capability = self.capability
        for scene in self._all_scenes():
            in_frame = to_frame(scene, capability.frame)
            before = serialize(in_frame)
            source = SceneSource(scene)
            try_in_child((conversions.resolve_chain(self.registry, source, self.format_id, self.options), source))
            with fail_on_exit_or_timeout(self.what), np.errstate(all="ignore"):
                load(capability.run)(in_frame, Target(), decode(capability.options, self.options))
            require(serialize(in_frame) == before, f"{self.what} changes the scene that it writes")

    def test_it_does_nothing_but_write(self) -> None:
        """Test that writing emits no warning, prints nothing, and leaves no other file."""
        self.require_available()
        for scene in self._all_scenes():
            with forbid_side_effects(self.what):
                self.write(scene)

    @pytest.mark.parametrize("name", sorted(sample_scenes.unusual()))
    def test_an_odd_scene_is_written_or_refused(self, name: str) -> None:
        """Test that an unusual but legal scene is written, or rejected with an error that states the reason."""
        self.require_available()
        scene = sample_scenes.unusual()[name]
        with forbid_side_effects(f"writing {name}"):
            try:
                target = self.write(scene)
            except ConversionFailed as error:
                require(error.message.strip(), f"{name}: the error has no message")
                return
            except Exception as error:
                cause = error.__cause__ or error
                raise AssertionError(f"{name}: {type(cause).__name__}: {cause}") from error
        require(self.read_back(target).face_count > 0, f"{name}: the file has no faces")
