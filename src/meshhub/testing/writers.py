"""The contract of writers."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from meshhub.errors import ConversionFailed
from meshhub.model.capabilities import FEATURES, Feature, Writer
from meshhub.model.options import OptionField, decode
from meshhub.model.scene import Scene
from meshhub.model.source import Target
from meshhub.pipeline.declarations import Declared, load
from meshhub.testing import host, models
from meshhub.testing.comparing import difference, names
from meshhub.testing.contract import Contract, fields_of
from meshhub.testing.elsewhere import digests_elsewhere, try_elsewhere
from meshhub.testing.fixture import SceneSource
from meshhub.testing.jobs import content, digest
from meshhub.testing.watching import bounded, require, watched
from meshhub.toolkit.geometry import to_frame


class WriterContract(Contract[Writer]):
    """What every writer keeps.

    format_id: the id of the format that is written
    scenes:    more scenes to write, in millimetres, Z up

    What was written is read back by the format's own reader. A writer of a format that nobody reads
    overrides `read_back`.
    """

    format_id: ClassVar[str]
    scenes: ClassVar[Sequence[Scene]] = ()

    @property
    def candidates(self) -> Iterable[Declared[Writer]]:
        """The writers of the format."""
        return (one for one in self.registry.declarations.writers if one.capability.format.id == self.format_id)

    @property
    def what(self) -> str:
        """The writer, in words."""
        return f"a writer of {self.format_id!r}"

    @property
    def owner(self) -> str:
        """The format's id."""
        return self.format_id

    @property
    def option_fields(self) -> tuple[OptionField, ...]:
        """The fields of the writer's options."""
        return fields_of(self.capability.options)

    @property
    def carried_back(self) -> frozenset[Feature]:
        """What the format's own reader declares; empty when there is none."""
        readers = [one for one in self.registry.declarations.readers if one.capability.format.id == self.format_id]
        return next((one.capability.carries for one in readers if not one.missing), frozenset())

    def write(self, scene: Scene, name: str = "model") -> Target:
        """A scene, in millimetres and Z up, as a file in memory."""
        return host.write(self.registry, self.format_id, scene, self.options, name)

    def read_back(self, target: Target) -> Scene:
        """What a reader makes of a written file, in millimetres, Z up; skips when there is no reader."""
        readers = [one for one in self.registry.declarations.readers if one.capability.format.id == self.format_id]
        if not any(not one.missing for one in readers):
            pytest.skip(f"no reader of {self.format_id!r} is registered; override `read_back`")
        source = host.as_source(target, self.capability.format.extensions[0])
        return host.read(self.registry, self.format_id, source, {})[0]

    def _all(self) -> list[Scene]:
        return [
            models.brick(),
            models.twice(),
            models.mirrored(),
            *models.SHOWING.values(),
            models.full(),
            *self.scenes,
        ]

    def test_a_brick_keeps_its_size_and_orientation(self) -> None:
        """A box of 10 × 20 × 30 mm stays where it is, stands up, and is not inside out."""
        self.declared  # noqa: B018 - skips here
        fault = difference(models.brick(), self.read_back(self.write(models.brick())))
        require(not fault, f"the brick of 10 × 20 × 30: {fault}")

    def test_a_part_placed_twice_stays_two(self) -> None:
        """Both instances are there, each in its place."""
        self.declared  # noqa: B018 - skips here
        fault = difference(models.twice(), self.read_back(self.write(models.twice())))
        require(not fault, f"a part placed twice: {fault}")

    def test_a_mirrored_part_is_not_inside_out(self) -> None:
        """A transform that mirrors turns the faces, so that outside stays outside."""
        self.declared  # noqa: B018 - skips here
        fault = difference(models.mirrored(), self.read_back(self.write(models.mirrored())))
        require(not fault, f"a mirrored part: {fault}")

    @pytest.mark.parametrize("feature", sorted(FEATURES))
    def test_a_carried_feature_survives(self, feature: Feature) -> None:
        """What the writer declares, and the format's reader too, comes back as it was."""
        if feature not in self.capability.carries:
            pytest.skip(f"{self.what} does not declare {feature}")
        scene = models.SHOWING[feature]
        target = self.write(scene)
        if feature not in self.carried_back and type(self).read_back is WriterContract.read_back:
            pytest.skip(f"no reader of {self.format_id!r} declares {feature}")
        back = self.read_back(target)
        fault = difference(scene, back, feature)
        require(not fault, f"{feature}: {fault}")
        if feature == "names":
            require(names(back) == names(scene), f"the parts are called {names(back)} instead of {names(scene)}")
        if feature == "instances":
            require(len({part.mesh for part in back.parts}) < len(back.parts), "the instances have meshes of their own")

    def test_what_is_not_carried_does_no_harm(self) -> None:
        """A scene of everything that a scene can hold comes back with the same triangles."""
        self.declared  # noqa: B018 - skips here
        for scene in (models.full(), *self.scenes):
            fault = difference(scene, self.read_back(self.write(scene)))
            require(not fault, f"a scene of everything: {fault}")

    def test_bytes_are_the_same_each_time(self) -> None:
        """The same scene gives the same bytes, in other processes, on other days and under other names too."""
        self.declared  # noqa: B018 - skips here
        jobs = []
        for scene in self._all():
            source = SceneSource(scene)
            jobs.append((host.chain_of(self.registry, source, self.format_id, self.options), source))
        here = [host.digest_here(job) for job in jobs]
        require(here == [host.digest_here(job) for job in jobs], f"{self.what} writes other bytes the second time")
        for there in digests_elsewhere(jobs):
            require(here == there, f"{self.what} writes other bytes in another process")
        named = digest(self.write(self._all()[0], "secret-customer.name"))
        require(named == here[0], f"{self.what} writes the name of the file into it")

    def test_a_folder_gets_the_same_bytes_as_memory(self) -> None:
        """What is written into a folder is what is written into memory, and nothing else lies there."""
        self.declared  # noqa: B018 - skips here
        with tempfile.TemporaryDirectory() as place:
            source, target = SceneSource(models.full()), Target("model", folder=Path(place))
            job = host.chain_of(self.registry, source, self.format_id, self.options), source
            host.run_here(self.registry, job, target)
            left = sorted(path.name for path in Path(place).iterdir())
            require(left == sorted(target.names), f"{self.what} leaves {left} in the folder, and names {target.names}")
            require(
                digest(target) == digest(self.write(models.full())), f"{self.what} writes other bytes into a folder"
            )

    def test_the_scene_stays_untouched(self) -> None:
        """Not a byte of the scene's arrays changes while it is written."""
        capability = self.capability
        for scene in self._all():
            given = to_frame(scene, capability.frame)
            before = content(given)
            source = SceneSource(scene)
            try_elsewhere((host.chain_of(self.registry, source, self.format_id, self.options), source))
            with bounded(self.what), np.errstate(all="ignore"):
                load(capability.run)(given, Target(), decode(capability.options, self.options))
            require(content(given) == before, f"{self.what} changes the scene that it writes")

    def test_it_does_nothing_but_write(self) -> None:
        """No warning, no print, no file beside the one it was given."""
        self.declared  # noqa: B018 - skips here
        for scene in self._all():
            with watched(self.what):
                self.write(scene)

    @pytest.mark.parametrize("name", sorted(models.odd()))
    def test_an_odd_scene_is_written_or_refused(self, name: str) -> None:
        """Legal scenes that are seldom thought of come back as they were, or get an error that says why."""
        self.declared  # noqa: B018 - skips here
        scene = models.odd()[name]
        with watched(f"writing {name}"):
            try:
                target = self.write(scene)
            except ConversionFailed as error:
                require(error.message.strip(), f"{name}: the error says nothing")
                return
            except Exception as error:
                cause = error.__cause__
                raise AssertionError(f"{name}: {type(cause or error).__name__}: {cause or error}") from error
        require(self.read_back(target).face_count > 0, f"{name}: nothing comes back")
