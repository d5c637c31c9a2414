"""The contract of operations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

import numpy as np
import pytest

from meshhub.errors import ConversionFailed, InvalidOption
from meshhub.model.capabilities import FEATURES, Feature, Operation
from meshhub.model.chain import Chain
from meshhub.model.options import OptionField, decode
from meshhub.model.scene import Float64, Part, Scene
from meshhub.pipeline.declarations import Declared, load
from meshhub.pipeline.inspection import inspect
from meshhub.testing import host, models
from meshhub.testing.comparing import names
from meshhub.testing.contract import Contract, fields_of
from meshhub.testing.elsewhere import digests_elsewhere, try_elsewhere
from meshhub.testing.fixture import SCENE, SceneSource
from meshhub.testing.jobs import content
from meshhub.testing.watching import bounded, require, watched
from meshhub.toolkit.geometry import soup, transformed


class OperationContract(Contract[Operation]):
    """What every operation keeps.

    operation_id: the operation's id
    options:      values that make it work on a box of 10 × 20 × 30 mm of 12 faces; without them
                  each option has its first declared example (`Meta(examples=[…])`), or else
                  switches are on, numbers a moderate one within their bounds
    scenes:       more scenes to work on, in millimetres, Z up
    """

    operation_id: ClassVar[str]
    scenes: ClassVar[Sequence[Scene]] = ()

    @property
    def candidates(self) -> Iterable[Declared[Operation]]:
        """The operation of this id."""
        return (one for one in self.registry.declarations.operations if one.capability.id == self.operation_id)

    @property
    def what(self) -> str:
        """The operation, in words."""
        return f"the operation {self.operation_id!r}"

    @property
    def owner(self) -> str:
        """The operation's id."""
        return self.operation_id

    @property
    def option_fields(self) -> tuple[OptionField, ...]:
        """The fields of the operation's options."""
        return fields_of(self.capability.options)

    def asked(self) -> Mapping[str, object]:
        """The options that the operation is asked for with."""
        if self.options:
            return self.options
        moderate = {field.name: _moderate(field) for field in self.option_fields}
        return {name: value for name, value in moderate.items() if value is not None}

    def operate(self, scene: Scene) -> Scene:
        """What the operation makes of a scene."""
        return host.operate(self.registry, scene, self.asked())

    def chain(self, source: SceneSource) -> Chain:
        """The chain of the operation alone."""
        return host.chain_of(self.registry, source, SCENE.id, self.asked())

    def _all(self) -> list[Scene]:
        return [models.brick(), models.twice(), models.mirrored(), models.full(), *self.scenes]

    def test_it_takes_part_when_it_is_asked_for(self) -> None:
        """Its options bring it into the chain, and without them it stays out."""
        self.declared  # noqa: B018 - skips here
        source = SceneSource(models.brick())
        steps = [step.id for step in self.chain(source).steps]
        require(self.operation_id in steps, f"{self.what} takes no part with {dict(self.asked())}")
        idle = host.chain_of(self.registry, source, SCENE.id, {})
        require(self.operation_id not in [step.id for step in idle.steps], f"{self.what} takes part unasked")

    def test_a_closed_brick_stays_closed_and_outward(self) -> None:
        """A sound box of 10 × 20 × 30 mm neither opens nor turns inside out."""
        self.declared  # noqa: B018 - skips here
        for scene in (models.brick(), models.mirrored()):
            found = inspect(self.operate(scene))
            require(found.watertight, f"{self.what} opens a closed brick: {found.open_edges} open edges")
            require((found.volume_mm3 or 0) > 0, f"{self.what} turns a brick inside out")

    def test_a_part_placed_twice_stays_two(self) -> None:
        """Both instances are there, each in a place of its own."""
        self.declared  # noqa: B018 - skips here
        scene = self.operate(models.twice())
        require(inspect(scene).bodies == 2, f"{self.what} makes {inspect(scene).bodies} bodies of two")
        middles = [_middle(scene, part) for part in scene.parts if len(scene.meshes[part.mesh].faces)]
        apart = len(middles) < 2 or float(np.linalg.norm(middles[0] - middles[1])) > 0.1 * _extent(scene)
        require(apart, f"{self.what} puts two parts in one place")

    @pytest.mark.parametrize("feature", sorted(FEATURES - {"units"}))
    def test_it_drops_what_it_declares_and_nothing_else(self, feature: Feature) -> None:
        """A feature is gone afterwards exactly when the operation declares to drop it."""
        drops = feature in self.capability.drops
        scene = models.full()
        found = self.operate(scene)
        gone = feature not in found.features()
        require(not gone or drops, f"{self.what} drops {feature}, and does not declare it")
        require(gone or not drops, f"{self.what} declares to drop {feature}, and keeps it")
        if feature == "names" and not drops:
            require(names(found) == names(scene), f"the parts are called {names(found)} instead of {names(scene)}")

    def test_scenes_are_the_same_each_time(self) -> None:
        """The same scene gives the same result, in other processes and on other days too."""
        self.declared  # noqa: B018 - skips here
        sources = [SceneSource(scene) for scene in self._all()]
        jobs = [(self.chain(source), source) for source in sources]
        here = [host.digest_here(job) for job in jobs]
        require(here == [host.digest_here(job) for job in jobs], f"{self.what} gives another scene the second time")
        for there in digests_elsewhere(jobs):
            require(here == there, f"{self.what} gives another scene in another process")

    def test_the_scene_stays_untouched(self) -> None:
        """Not a byte of the scene's arrays changes while it is worked on."""
        capability = self.capability
        for scene in self._all():
            before = content(scene)
            try_elsewhere((self.chain(source := SceneSource(scene)), source))
            with bounded(self.what), np.errstate(all="ignore"):
                load(capability.run)(scene, decode(capability.options, self.asked()))
            require(content(scene) == before, f"{self.what} changes the scene that it is given")

    def test_it_does_nothing_but_work(self) -> None:
        """No warning, no print, no file."""
        self.declared  # noqa: B018 - skips here
        for scene in self._all():
            with watched(self.what):
                self.operate(scene)

    @pytest.mark.parametrize("name", sorted(models.odd()))
    def test_an_odd_scene_gives_a_scene_or_a_coded_error(self, name: str) -> None:
        """Legal scenes that are seldom thought of are worked on, or get an error that says why."""
        self.declared  # noqa: B018 - skips here
        with watched(f"{self.what} on {name}"):
            try:
                self.operate(models.odd()[name])
            except (ConversionFailed, InvalidOption) as error:
                require(error.message.strip(), f"{name}: the error says nothing")
            except Exception as error:
                cause = error.__cause__
                raise AssertionError(f"{name}: {type(cause or error).__name__}: {cause or error}") from error


def _moderate(field: OptionField) -> object:
    """A value that asks for something that can be done with a small box: the declared example, or a moderate one."""
    if field.example is not None:
        return field.example
    if field.kind == "flag":
        return True
    if field.kind == "choice":
        return field.choices[-1]
    if field.kind == "text":
        return None
    low = field.minimum if field.minimum is not None else field.exclusive_minimum or 0
    value = min(max(10.0, low), field.maximum if field.maximum is not None else 10.0)
    return int(value) if field.kind == "integer" else value


def _middle(scene: Scene, part: Part) -> Float64:
    mesh = scene.meshes[part.mesh]
    middle: Float64 = transformed(mesh.vertices[mesh.faces].reshape(-1, 3), part.transform).mean(axis=0)
    return middle


def _extent(scene: Scene) -> float:
    return float(np.ptp(soup(scene)[0], axis=0).max())
