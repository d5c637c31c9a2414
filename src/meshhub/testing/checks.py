"""Contract of checks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import ClassVar, cast

import numpy as np
import pytest
from msgspec import structs

from meshhub.errors import ConversionFailed, InvalidOption
from meshhub.model.capabilities import Check
from meshhub.model.chain import Chain, Judge, Position, Request
from meshhub.model.estimate import Estimate
from meshhub.model.options import parse_options
from meshhub.model.scene import Scene
from meshhub.model.source import Target
from meshhub.model.verdict import Finding, Verdict
from meshhub.pipeline.declarations import Declared
from meshhub.pipeline.judging import list_results
from meshhub.testing import conversions, sample_scenes
from meshhub.testing.child_process import fingerprint_in_children, try_in_child
from meshhub.testing.child_tasks import serialize
from meshhub.testing.contract import Contract
from meshhub.testing.guards import fail_on_exit_or_timeout, forbid_side_effects, require
from meshhub.testing.memory_format import SCENE, SceneSource
from meshhub.toolkit.geometry import soup

_CODE = re.compile(r"[a-z][a-z0-9_]*")

_MAX_OUTSIDE_RATIO = 0.01
"""Distance of a place from the bounding box, relative to its diagonal; centers of cells may lie outside."""


class CheckContract(Contract[Check]):
    """Tests that each check must pass.

    Attributes:
        check_id: Id of the check.
        finds: Scenes in millimeters, Z up, by the code of the finding that the check has to report. At least one,
            except for a check that only makes an estimate.
        passes: Scenes without an error or a warning. Default: a closed box of 10 × 20 × 30 mm.
        options: Values for options of the check.
    """

    check_id: ClassVar[str]
    finds: ClassVar[Mapping[str, Scene]] = {}
    passes: ClassVar[Sequence[Scene]] = (sample_scenes.brick(),)

    @property
    def candidates(self) -> Iterable[Declared[Check]]:
        """Checks with this id."""
        return (check for check in self.registry.declarations.checks if check.capability.id == self.check_id)

    @property
    def what(self) -> str:
        """Name of the check in failure messages."""
        return f"the check {self.check_id!r}"

    @property
    def owner(self) -> str:
        """Id of the check."""
        return self.check_id

    def chain(self, source: SceneSource) -> Chain:
        """Resolve the chain with only this check."""
        options = {**self.options, "checks": self.check_id, "input_format": SCENE.id}
        with fail_on_exit_or_timeout("a plug-in"):
            return self.registry.resolve(Request(purpose="check", options=options), source)

    def examine(self, scene: Scene) -> list[Finding]:
        """Return the findings about a scene (millimeters, Z up), as the check reports them. Raises MeshhubError."""
        return [result for result in self._list_results(scene) if isinstance(result, Finding)]

    def _list_results(self, scene: Scene) -> list[Finding | Estimate]:
        source = SceneSource(scene)
        chain = self.chain(source)
        try_in_child((_without_remedies(chain), source))
        number = next(number for number, step in enumerate(chain.steps) if step.kind == "check")
        with fail_on_exit_or_timeout(self.what), np.errstate(all="ignore"):
            return list(list_results(Position(chain, number), scene))

    def _all_scenes(self) -> list[Scene]:
        return [sample_scenes.brick(), sample_scenes.twice(), sample_scenes.full(), *self.finds.values(), *self.passes]

    def _all_findings(self) -> Iterator[tuple[Scene, Finding]]:
        self.require_available()
        for scene in self._all_scenes():
            yield from ((scene, finding) for finding in self.examine(scene))

    def test_it_finds_what_it_is_for(self) -> None:
        """Test that the check reports each code of `finds` on its scene."""
        if self.capability.estimates is None:
            require(self.finds, f"{self.what} is never seen to find anything; set `finds`, a scene for each code")
        for code, scene in self.finds.items():
            codes = sorted({finding.code for finding in self.examine(scene)})
            require(code in codes, f"{self.what} reports {', '.join(codes) or 'nothing'} instead of {code}")

    def test_it_passes_good_models(self) -> None:
        """Test that the scenes of `passes` have no error and no warning."""
        self.require_available()
        for scene in self.passes:
            for finding in self.examine(scene):
                is_fact = finding.severity == "info"
                require(is_fact, f"{self.what} objects to a good model: {finding.message} [{finding.code}]")

    def test_findings_are_complete(self) -> None:
        """Test that each finding has a code, a message, a number of places that fits them, and amounts with a limit."""
        for _, finding in self._all_findings():
            require(_CODE.fullmatch(finding.code), f"the code {finding.code!r} is not of a-z, 0-9 and _")
            require(finding.message.strip(), f"{finding.code} has no message")
            listed = len(finding.places)
            require(
                finding.places_found >= listed, f"{finding.code} lists {listed} places of {finding.places_found} found"
            )
            has_share = finding.share is None or 0 <= finding.share <= 1
            require(has_share, f"{finding.code} has a share of {finding.share}, which is not from 0 to 1")

    def test_places_lie_on_the_model(self) -> None:
        """Test that the places of findings, in millimeters, lie in the bounding box of the model."""
        for scene, finding in self._all_findings():
            corners = soup(scene)[0]
            low, high = corners.min(axis=0), corners.max(axis=0)
            margin = _MAX_OUTSIDE_RATIO * float(np.linalg.norm(high - low))
            for place in finding.places:
                position = np.array(place.position_mm)
                is_inside = bool(((position >= low - margin) & (position <= high + margin)).all())
                require(is_inside, f"a place of {finding.code} lies beside the model, at {place.position_mm}")

    def test_mentioned_options_exist(self) -> None:
        """Test that the options of messages and remedies exist, and that remedies have valid values."""
        fields = self.registry.declarations.fields()
        known = fields.keys() | self.registry.declarations.check_fields().keys()
        for _, finding in self._all_findings():
            unknown = sorted({*finding.options, *finding.remedy} - known)
            require(not unknown, f"{finding.code} names unknown options: {', '.join(unknown)}")
            try:
                parse_options(fields, finding.remedy)
            except InvalidOption as error:
                raise AssertionError(f"the remedy of {finding.code} is invalid: {error}") from error

    def test_remedies_help(self) -> None:
        """Test that the host keeps the remedies of the scenes of `finds`, because they help."""
        self.require_available()
        for scene in self.finds.values():
            remedies = {finding.code: finding.remedy for finding in self.examine(scene) if finding.remedy}
            if not remedies:
                continue
            source = SceneSource(scene)
            with fail_on_exit_or_timeout(self.what):
                verdict = cast(Verdict, self.registry.run(self.chain(source), source, Target()))
            for finding in verdict.findings:
                remedy = remedies.get(finding.code, {})
                require(finding.remedy or not remedy, f"the remedy {remedy} of {finding.code} does not help")

    def test_findings_are_the_same_each_time(self) -> None:
        """Test that a scene gives the same findings twice, in other processes and on another day."""
        self.require_available()
        sources = [SceneSource(scene) for scene in self._all_scenes()]
        chain_runs = [(_without_remedies(self.chain(source)), source) for source in sources]
        first, second = ([conversions.fingerprint_guarded(each) for each in chain_runs] for _ in range(2))
        require(first == second, f"{self.what} gives other findings the second time")
        for in_child in fingerprint_in_children(chain_runs):
            require(first == in_child, f"{self.what} gives other findings in another process")

    def test_the_scene_stays_untouched(self) -> None:
        """Test that the check changes no byte of the arrays of its scene."""
        self.require_available()
        for scene in self._all_scenes():
            before = serialize(scene)
            self._list_results(scene)
            require(serialize(scene) == before, f"{self.what} changes its scene")

    def test_it_does_nothing_but_check(self) -> None:
        """Test that the check emits no warning, prints nothing, and leaves no file."""
        self.require_available()
        for scene in self._all_scenes():
            with forbid_side_effects(self.what):
                self._list_results(scene)

    @pytest.mark.parametrize("name", sorted(sample_scenes.unusual()))
    def test_an_odd_scene_gives_findings_or_a_coded_error(self, name: str) -> None:
        """Test that an unusual but legal scene gives findings, or an error that states the reason."""
        self.require_available()
        with forbid_side_effects(f"{self.what} on {name}"):
            try:
                self._list_results(sample_scenes.unusual()[name])
            except (ConversionFailed, InvalidOption) as error:
                require(error.message.strip(), f"{name}: the error has no message")
            except Exception as error:
                raise AssertionError(f"{name}: {error}") from error


def _without_remedies(chain: Chain) -> Chain:
    """Return the chain without the operations with which remedies are tried, which take time."""
    return structs.replace(chain, ending=Judge())
