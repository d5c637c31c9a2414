"""Contract of operations."""

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
from meshhub.testing import conversions, sample_scenes
from meshhub.testing.child_process import fingerprint_in_children, try_in_child
from meshhub.testing.child_tasks import serialize
from meshhub.testing.comparison import part_names
from meshhub.testing.contract import Contract
from meshhub.testing.guards import fail_on_exit_or_timeout, forbid_side_effects, require
from meshhub.testing.memory_format import SCENE, SceneSource
from meshhub.toolkit.geometry import soup, transformed

_DEFAULT_NUMBER = 10.0
"""Value of a number without an example, clamped to its bounds; in most units (mostly millimeters) it changes the brick.
"""

_MIN_DISTANCE_RATIO = 0.1
"""Smallest distance at which two instances count as being in different places, relative to the extent of the scene."""

_full_results: dict[type, Scene] = {}
"""Results of the scene with all features by contract, for the tests of all features."""


class OperationContract(Contract[Operation]):
    """Tests that each operation must pass.

    Attributes:
        operation_id: Id of the operation.
        options: Values with which the operation changes a box of 10 × 20 × 30 mm with 12 faces. Default: the first
            declared example of each option (`Meta(examples=[…])`); without an example, flags are on, and numbers are
            moderate within their bounds.
        scenes: More scenes to test, in millimeters, Z up.
    """

    operation_id: ClassVar[str]
    scenes: ClassVar[Sequence[Scene]] = ()

    @property
    def candidates(self) -> Iterable[Declared[Operation]]:
        """Operations with this id."""
        operations = self.registry.declarations.operations
        return (operation for operation in operations if operation.capability.id == self.operation_id)

    @property
    def what(self) -> str:
        """Name of the operation in failure messages."""
        return f"the operation {self.operation_id!r}"

    @property
    def owner(self) -> str:
        """Id of the operation."""
        return self.operation_id

    def effective_options(self) -> Mapping[str, object]:
        """Return `options`, or by default values that select the operation."""
        if self.options:
            return self.options
        defaults = {field.name: _choose_value(field) for field in self.option_fields}
        return {name: value for name, value in defaults.items() if value is not None}

    def operate(self, scene: Scene) -> Scene:
        """Run the operation on a scene (millimeters, Z up)."""
        return conversions.operate(self.registry, scene, self.effective_options())

    def chain(self, source: SceneSource) -> Chain:
        """Resolve the chain with only this operation."""
        return conversions.resolve_chain(self.registry, source, SCENE.id, self.effective_options())

    def _all_scenes(self) -> list[Scene]:
        return [
            sample_scenes.brick(),
            sample_scenes.twice(),
            sample_scenes.mirrored(),
            sample_scenes.full(),
            *self.scenes,
        ]

    def test_it_takes_part_when_it_is_asked_for(self) -> None:
        """Test that the options add the operation to the chain, and that the chain lacks it without them."""
        self.require_available()
        source = SceneSource(sample_scenes.brick())
        steps = [step.id for step in self.chain(source).steps]
        require(self.operation_id in steps, f"{self.what} is not in the chain with {dict(self.effective_options())}")
        without_options = conversions.resolve_chain(self.registry, source, SCENE.id, {})
        steps = [step.id for step in without_options.steps]
        require(self.operation_id not in steps, f"{self.what} is in the chain without its options")

    def test_a_closed_brick_stays_closed_and_outward(self) -> None:
        """Test that a valid box of 10 × 20 × 30 mm stays closed and oriented outward."""
        self.require_available()
        for scene in (sample_scenes.brick(), sample_scenes.mirrored()):
            inspection = inspect(self.operate(scene))
            require(inspection.watertight, f"{self.what} opens a closed brick: {inspection.open_edges} open edges")
            require((inspection.volume_mm3 or 0) > 0, f"{self.what} turns a brick inside out")

    def test_a_part_placed_twice_stays_two(self) -> None:
        """Test that both instances remain, each in its own place."""
        self.require_available()
        scene = self.operate(sample_scenes.twice())
        bodies = inspect(scene).bodies
        require(bodies >= 2, f"{self.what} leaves {bodies} bodies of two")
        centers = [_center(scene, part) for part in scene.parts if len(scene.meshes[part.mesh].faces)]
        if len(centers) > 1:
            distance = float(np.linalg.norm(centers[0] - centers[1]))
            require(distance > _MIN_DISTANCE_RATIO * _extent(scene), f"{self.what} moves two parts to one place")

    @pytest.mark.parametrize("feature", sorted(FEATURES - {"units"}))
    def test_it_drops_what_it_declares_and_nothing_else(self, feature: Feature) -> None:
        """Test that a feature is lost exactly if the operation declares to drop it."""
        is_declared = feature in self.capability.drops
        scene = sample_scenes.full()
        if type(self) not in _full_results:
            _full_results[type(self)] = self.operate(scene)
        result = _full_results[type(self)]
        is_lost = feature not in result.features()
        require(is_declared or not is_lost, f"{self.what} drops {feature}, but does not declare it")
        require(is_lost or not is_declared, f"{self.what} declares to drop {feature}, but keeps it")
        if feature == "names" and not is_declared:
            actual, expected = sorted(set(part_names(result))), sorted(set(part_names(scene)))
            require(actual == expected, f"the parts are named {actual} instead of {expected}")

    def test_scenes_are_the_same_each_time(self) -> None:
        """Test that a scene gives the same result twice, in other processes and on another day."""
        self.require_available()
        sources = [SceneSource(scene) for scene in self._all_scenes()]
        chain_runs = [(self.chain(source), source) for source in sources]
        first, second = ([conversions.fingerprint_guarded(each) for each in chain_runs] for _ in range(2))
        require(first == second, f"{self.what} gives another scene the second time")
        for in_child in fingerprint_in_children(chain_runs):
            require(first == in_child, f"{self.what} gives another scene in another process")

    def test_the_scene_stays_untouched(self) -> None:
        """Test that the operation changes no byte of the arrays of its input scene."""
        capability = self.capability
        for scene in self._all_scenes():
            before = serialize(scene)
            source = SceneSource(scene)
            try_in_child((self.chain(source), source))
            with fail_on_exit_or_timeout(self.what), np.errstate(all="ignore"):
                load(capability.run)(scene, decode(capability.options, self.effective_options()))
            require(serialize(scene) == before, f"{self.what} changes its input scene")

    def test_it_does_nothing_but_work(self) -> None:
        """Test that the operation emits no warning, prints nothing, and leaves no file."""
        self.require_available()
        for scene in self._all_scenes():
            with forbid_side_effects(self.what):
                self.operate(scene)

    @pytest.mark.parametrize("name", sorted(sample_scenes.unusual()))
    def test_an_odd_scene_gives_a_scene_or_a_coded_error(self, name: str) -> None:
        """Test that an unusual but legal scene gives a scene, or an error that states the reason."""
        self.require_available()
        with forbid_side_effects(f"{self.what} on {name}"):
            try:
                self.operate(sample_scenes.unusual()[name])
            except (ConversionFailed, InvalidOption) as error:
                require(error.message.strip(), f"{name}: the error has no message")
            except Exception as error:
                cause = error.__cause__ or error
                raise AssertionError(f"{name}: {type(cause).__name__}: {cause}") from error


def _choose_value(field: OptionField) -> object:
    """Return the declared example, or a value that a small box allows; None for a text without an example."""
    if field.example is not None:
        return field.example
    if field.kind == "flag":
        return True
    if field.kind == "choice":
        return field.choices[-1]
    if field.kind == "text":
        return None
    low = field.minimum if field.minimum is not None else field.exclusive_minimum or 0
    high = field.maximum if field.maximum is not None else _DEFAULT_NUMBER
    value = min(max(_DEFAULT_NUMBER, low), high)
    return int(value) if field.kind == "integer" else value


def _center(scene: Scene, part: Part) -> Float64:
    mesh = scene.meshes[part.mesh]
    center: Float64 = transformed(mesh.vertices[mesh.faces].reshape(-1, 3), part.transform).mean(axis=0)
    return center


def _extent(scene: Scene) -> float:
    return float(np.ptp(soup(scene)[0], axis=0).max())
