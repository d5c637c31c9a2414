"""Contract of readers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

import numpy as np
import pytest

from meshhub.errors import SourceError
from meshhub.model.capabilities import FEATURES, Feature, Reader
from meshhub.model.chain import Request
from meshhub.model.scene import Scene
from meshhub.model.source import Source
from meshhub.pipeline.declarations import Declared
from meshhub.pipeline.inspection import inspect
from meshhub.registry import Registry
from meshhub.testing import conversions, sample_scenes
from meshhub.testing.child_process import (
    MAX_TASK_CPU_S,
    check_outcomes_in_child,
    check_scores_in_child,
    fingerprint_in_children,
)
from meshhub.testing.contract import Contract
from meshhub.testing.guards import DEADLINE_S, fail_on_exit_or_timeout, require
from meshhub.testing.hostile_files import corrupted_files, random_files, slow_heads, truncated_files
from meshhub.testing.memory_format import SCENE

_written_files: dict[tuple[Registry, str, str], Source] = {}
"""Cache of files by registry, format and name of the scene, because some formats take seconds to write."""


class ReaderContract(Contract[Reader]):
    """Tests that each reader must pass.

    Attributes:
        format_id: Id of the format.
        brick: File by another program with a box of 10 × 20 × 30 mm, a corner at the origin, 30 mm along up;
            default: the format's own writer makes it.
        samples: More files; together with the files of the format's own writer, they must contain all features that the
            reader declares.
        may_crash: Whether the reader uses native code that may crash on damaged files; tests then accept crashes of the
            child process.
    """

    format_id: ClassVar[str]
    brick: ClassVar[Source | None] = None
    samples: ClassVar[Sequence[Source]] = ()
    may_crash: ClassVar[bool] = False

    @property
    def candidates(self) -> Iterable[Declared[Reader]]:
        """Readers of the format."""
        readers = self.registry.declarations.readers
        return (reader for reader in readers if reader.capability.format.id == self.format_id)

    @property
    def what(self) -> str:
        """Name of the reader in failure messages."""
        return f"a reader of {self.format_id!r}"

    @property
    def owner(self) -> str:
        """Id of the format."""
        return self.format_id

    def read(self, source: Source) -> Scene:
        """Read a file to a scene in millimeters, Z up."""
        return conversions.read(self.registry, self.format_id, source, self.options)[0]

    def brick_file(self) -> Source:
        """Return the brick as a file."""
        brick = self.brick or self._written("brick", sample_scenes.brick())
        if brick is None:
            raise AssertionError(f"{self.what} needs a `brick`: a file of the box that the contract describes")
        return brick

    def files(self) -> list[Source]:
        """Return the brick, the samples, and a file with all features if the format has a writer."""
        full = self._written("full", sample_scenes.full())
        return [self.brick_file(), *self.samples, *([full] if full is not None else [])]

    def _written(self, name: str, scene: Scene) -> Source | None:
        """Return a scene as a file of the format, written once per run; None if no writer is available."""
        declared = self.registry.declarations
        origins = {reader.origin for reader in declared.readers if reader.capability.format.id == self.format_id}
        # another distribution may write the format for other purposes, such as G-code by a slicer
        writers = [
            writer
            for writer in declared.writers
            if writer.capability.format.id == self.format_id and writer.origin in origins
        ]
        if all(writer.missing for writer in writers):
            return None
        key = (self.registry, self.format_id, name)
        if key not in _written_files:
            target = conversions.write(self.registry, self.format_id, scene, {})
            _written_files[key] = conversions.as_source(target, writers[0].capability.format.extensions[0])
        return _written_files[key]

    def _check_hostile_files(self, files: Iterable[tuple[str, bytes]]) -> None:
        """Fail if reading a file ends in anything but a scene or an error about the file."""
        extension = self.capability.format.extensions[0]
        descriptions, contents = zip(*files, strict=True)
        sources = [Source.from_bytes(data, "hostile" + extension) for data in contents]
        chain = conversions.resolve_chain(self.registry, sources[0], SCENE.id, self.options, self.format_id)
        outcomes = check_outcomes_in_child([(chain, source) for source in sources], may_crash=self.may_crash)
        for description, fault in zip(descriptions, outcomes, strict=False):
            require(not fault, f"a file {description}: {fault}")
            require(
                fault is not None or self.may_crash,
                f"a file {description}: the reader crashes the process, or takes more than {MAX_TASK_CPU_S:g} s of "
                f"processor time or {DEADLINE_S:g} s of wall-clock time",
            )

    def test_the_sniffer_is_quick_and_gives_scores(self) -> None:
        """Test that each head takes at most a second of processor time and gets a score from 0 to 100.

        The heads slow down bad regular expressions: long runs, repeats, and files that nearly match.
        """
        capability = self.capability
        if capability.sniff is None:
            pytest.skip(f"{self.what} has no sniffer")
        heads = [source.head() for source in self.files()]
        check_scores_in_child(capability.sniff, list(slow_heads(heads, capability.format.magic)))

    def test_its_files_are_recognized(self) -> None:
        """Test that the format of each sample is detected."""
        sniff = self.capability.sniff
        if sniff is not None:
            check_scores_in_child(sniff, [(repr(source.name), source.head()) for source in self.files()])
        for source in self.files():
            with fail_on_exit_or_timeout(f"a sniffer, given {source.name!r},"):
                chain = self.registry.resolve(Request(purpose="inspect", options=self.options), source)
            require(
                chain.source_format == self.format_id,
                f"{source.name!r} is detected as {chain.source_format!r} ({chain.steps[0].because})",
            )

    def test_a_brick_keeps_its_size_and_orientation(self) -> None:
        """Test that a box of 10 × 20 × 30 mm keeps its position, up direction and outward orientation."""
        self.require_available()
        inspection = inspect(self.read(self.brick_file()))
        low, high = np.round(inspection.bounds_mm, 4)
        require(
            np.abs([*low, *(high - sample_scenes.SIZE)]).max() < 0.001,
            f"the brick of 10 × 20 × 30 lies from {low.tolist()} to {high.tolist()}",
        )
        volume = inspection.volume_mm3 or 0.0
        require(
            inspection.watertight and abs(volume - 6000) < 1,
            f"the brick of 10 × 20 × 30: {inspection.open_edges} open edges and a volume of {volume:.6g} instead of "
            "6000",
        )

    @pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le"])
    def test_text_is_read_in_another_encoding(self, encoding: str) -> None:
        """Test that UTF-16 and byte order marks, which the host removes, do not matter to sniffer and reader."""
        self.require_available()
        brick = self.brick_file()
        try:
            text = brick.read().decode("ascii")
        except UnicodeDecodeError:
            pytest.skip("the brick is not text")
        if "\0" in text:
            pytest.skip("the brick is not text")
        source = Source.from_bytes(text.encode(encoding), brick.name)
        source._companions, source._folder = brick._companions, brick._folder
        chain = self.registry.resolve(Request(purpose="inspect", options=self.options), source)
        require(
            chain.source_format == self.format_id, f"the brick in {encoding} is detected as {chain.source_format!r}"
        )
        bounds, expected = (np.array(inspect(self.read(each)).bounds_mm) for each in (source, brick))
        require(np.allclose(bounds, expected), f"the brick in {encoding} lies from {bounds[0]} to {bounds[1]}")

    @pytest.mark.parametrize("feature", sorted(FEATURES - {"units"}))
    def test_a_carried_feature_is_read(self, feature: Feature) -> None:
        """Test that at least one file contains the declared feature."""
        if feature not in self.capability.carries:
            pytest.skip(f"{self.what} does not declare {feature}")
        written = self._written(feature, sample_scenes.FEATURE_SCENES[feature])
        files = [*self.files(), *([written] if written is not None else [])]
        require(
            any(feature in self.read(source).features() for source in files),
            f"{self.what} declares {feature}, but none of its files shows it; add a file to `samples`",
        )

    def test_nothing_undeclared_is_read(self) -> None:
        """Test that no file has an undeclared feature, because losses are predicted from the declaration."""
        declared = self.capability.carries
        for source in self.files():
            undeclared = self.read(source).features() - declared
            require(
                not undeclared,
                f"{source.name!r} has {', '.join(sorted(undeclared))}, which {self.what} does not declare",
            )

    def test_scenes_are_the_same_each_time(self) -> None:
        """Test that a file gives the same scene twice, in other processes and on another day."""
        self.require_available()
        chain_runs = [
            (conversions.resolve_chain(self.registry, source, SCENE.id, self.options, self.format_id), source)
            for source in self.files()
        ]
        first, second = ([conversions.fingerprint_guarded(each) for each in chain_runs] for _ in range(2))
        require(first == second, f"{self.what} gives another scene the second time")
        for in_child in fingerprint_in_children(chain_runs):
            require(first == in_child, f"{self.what} gives another scene in another process")

    def test_scenes_are_finite(self) -> None:
        """Test that all positions, normals and texture coordinates are finite."""
        self.require_available()
        for source in self.files():
            for mesh in self.read(source).meshes:
                for values in (mesh.vertices, mesh.normals, mesh.uv):
                    is_finite = values is None or np.isfinite(values).all()
                    require(is_finite, f"{source.name!r} gives numbers that are not finite")

    def test_nothing_at_all_gives_a_coded_error(self) -> None:
        """Test that an empty file is rejected with an error about the file."""
        self.require_available()
        with pytest.raises(SourceError):
            self.read(Source.from_bytes(b"", "empty" + self.capability.format.extensions[0]))

    def test_a_file_cut_off_anywhere_gives_a_scene_or_a_coded_error(self) -> None:
        """Test truncated files: no other exception, no warning, no leftover file."""
        self.require_available()
        smallest = min(self.files(), key=lambda source: source.size)
        self._check_hostile_files(truncated_files(smallest.read()))

    def test_random_bytes_give_a_scene_or_a_coded_error(self) -> None:
        """Test random files and corrupted copies of valid files: no other exception, no warning, no leftover file."""
        self.require_available()
        self._check_hostile_files(random_files())
        for source in self.files():
            self._check_hostile_files(corrupted_files(source.read()))
