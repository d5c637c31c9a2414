"""The contract of readers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

import numpy as np
import pytest

from meshhub.errors import SourceError
from meshhub.model.capabilities import FEATURES, Feature, Reader
from meshhub.model.chain import Request
from meshhub.model.options import OptionField
from meshhub.model.scene import Scene
from meshhub.model.source import Source
from meshhub.pipeline.declarations import Declared
from meshhub.pipeline.inspection import inspect
from meshhub.testing import host, models
from meshhub.testing.contract import Contract, fields_of
from meshhub.testing.damage import cut_off, garbled, random_bytes, slow_heads
from meshhub.testing.elsewhere import LONGEST, digests_elsewhere, outcomes_elsewhere, scores_elsewhere
from meshhub.testing.fixture import SCENE
from meshhub.testing.watching import DEADLINE_S, bounded, require


class ReaderContract(Contract[Reader]):
    """What every reader keeps.

    format_id: the id of the format that is read
    brick:     a file that another program made of a box of 10 × 20 × 30 mm with a corner at the
               origin, 30 mm of it upwards; without it the format's own writer makes one
    samples:   more files; together with what the format's own writer makes they must show every
               feature that the reader declares
    may_crash: the reader rests on native code that is known to crash on damaged files, and which only
               a process of its own can hold
    """

    format_id: ClassVar[str]
    brick: ClassVar[Source | None] = None
    samples: ClassVar[Sequence[Source]] = ()
    may_crash: ClassVar[bool] = False

    @property
    def candidates(self) -> Iterable[Declared[Reader]]:
        """The readers of the format."""
        return (one for one in self.registry.declarations.readers if one.capability.format.id == self.format_id)

    @property
    def what(self) -> str:
        """The reader, in words."""
        return f"a reader of {self.format_id!r}"

    @property
    def owner(self) -> str:
        """The format's id."""
        return self.format_id

    @property
    def option_fields(self) -> tuple[OptionField, ...]:
        """The fields of the reader's options."""
        return fields_of(self.capability.options)

    def read(self, source: Source) -> Scene:
        """What the reader makes of a file, in millimetres, Z up."""
        return host.read(self.registry, self.format_id, source, self.options)[0]

    def brick_file(self) -> Source:
        """The brick as a file."""
        if self.brick is not None:
            return self.brick
        made = self._written(models.brick())
        if made is None:
            raise AssertionError(f"{self.what} needs a `brick`: a file of the box that the contract describes")
        return made

    def files(self) -> list[Source]:
        """The brick, the samples, and one file of everything if there is a writer."""
        made = self._written(models.full())
        return [self.brick_file(), *self.samples, *([made] if made is not None else [])]

    def _written(self, scene: Scene) -> Source | None:
        """A scene as a file of the format; None when no writer of it is whole."""
        writers = [one for one in self.registry.declarations.writers if one.capability.format.id == self.format_id]
        if not any(not one.missing for one in writers):
            return None
        target = host.write(self.registry, self.format_id, scene, {})
        return host.as_source(target, writers[0].capability.format.extensions[0])

    def _hostile(self, files: Iterable[tuple[str, bytes]]) -> None:
        """Read files that may be anything: a scene or an error of the file's own, and nothing else."""
        extension = self.capability.format.extensions[0]
        told = list(files)
        sources = [Source.from_bytes(data, "hostile" + extension) for _, data in told]
        chain = host.chain_of(self.registry, sources[0], SCENE.id, self.options, self.format_id)
        outcomes = outcomes_elsewhere([(chain, source) for source in sources], may_crash=self.may_crash)
        for (what, _), fault in zip(told, outcomes, strict=False):
            require(not fault, f"a file {what}: {fault}")
            require(
                fault is not None or self.may_crash,
                f"a file {what}: the reader crashes the process, or takes more than {LONGEST:g} s of processor time "
                f"or {DEADLINE_S:g} s by the clock",
            )

    def test_the_sniffer_is_quick_and_gives_scores(self) -> None:
        """No head of a file takes more than a second of processor time; every score is a whole number to 100.

        The heads are those that make regular expressions slow: long runs, repeats, and files that nearly match.
        """
        capability = self.capability
        if capability.sniff is None:
            pytest.skip(f"{self.what} has no sniffer")
        heads = [source.head() for source in self.files()]
        scores_elsewhere(capability.sniff, list(slow_heads(heads, capability.format.magic)))

    def test_its_files_are_recognised(self) -> None:
        """The format of every sample is found without being told."""
        sniff = self.capability.sniff
        if sniff is not None:
            scores_elsewhere(sniff, [(repr(source.name), source.head()) for source in self.files()])
        for source in self.files():
            with bounded(f"a sniffer, given {source.name!r},"):
                chain = self.registry.resolve(Request(target=None, options=self.options), source)
            require(
                chain.source_format == self.format_id,
                f"{source.name!r} is taken for {chain.source_format!r} ({chain.steps[0].because})",
            )

    def test_a_brick_keeps_its_size_and_orientation(self) -> None:
        """A box of 10 × 20 × 30 mm stays where it is, stands up, and is not inside out."""
        self.declared  # noqa: B018 - skips here
        found = inspect(self.read(self.brick_file()))
        low, high = np.round(found.bounds_mm, 4)
        require(
            np.abs([*low, *(high - models.SIZE)]).max() < 0.001,
            f"the brick of 10 × 20 × 30 lies from {low.tolist()} to {high.tolist()}",
        )
        volume = found.volume_mm3 or 0.0
        require(
            found.watertight and abs(volume - 6000) < 1,
            f"the brick of 10 × 20 × 30: {found.open_edges} open edges and a volume of {volume:.6g} instead of 6000",
        )

    def test_the_frame_is_as_declared(self) -> None:
        """Scenes come in the frame that the declaration states, unless that leaves it to each file."""
        frame = self.capability.frame
        if frame is None:
            pytest.skip("each file says its own frame")
        for source in self.files():
            _, report = host.read(self.registry, self.format_id, source, self.options)
            require(
                report.source.frame == frame, f"{source.name!r} comes in {report.source.frame}, declared is {frame}"
            )

    @pytest.mark.parametrize("feature", sorted(FEATURES - {"units"}))
    def test_a_carried_feature_is_read(self, feature: Feature) -> None:
        """What is declared as carried is found in one of the files at least."""
        if feature not in self.capability.carries:
            pytest.skip(f"{self.what} does not declare {feature}")
        made = self._written(models.SHOWING[feature])
        files = [*self.files(), *([made] if made is not None else [])]
        require(
            any(feature in self.read(source).features() for source in files),
            f"{self.what} declares {feature}, and none of its files shows any; add one to `samples`",
        )

    def test_nothing_undeclared_is_read(self) -> None:
        """No file gives a feature that is not declared: the losses told before a conversion rest on it."""
        declared = self.capability.carries
        for source in self.files():
            more = self.read(source).features() - declared
            require(not more, f"{source.name!r} gives {', '.join(sorted(more))}, which {self.what} does not declare")

    def test_scenes_are_the_same_each_time(self) -> None:
        """The same file gives the same scene, in other processes and on other days too."""
        self.declared  # noqa: B018 - skips here
        jobs = [
            (host.chain_of(self.registry, source, SCENE.id, self.options, self.format_id), source)
            for source in self.files()
        ]
        here = [host.digest_here(job) for job in jobs]
        require(here == [host.digest_here(job) for job in jobs], f"{self.what} gives another scene the second time")
        for there in digests_elsewhere(jobs):
            require(here == there, f"{self.what} gives another scene in another process")

    def test_scenes_are_finite(self) -> None:
        """No coordinate, normal or texture coordinate is infinite or no number."""
        self.declared  # noqa: B018 - skips here
        for source in self.files():
            for mesh in self.read(source).meshes:
                for values in (mesh.vertices, mesh.normals, mesh.uv):
                    require(values is None or np.isfinite(values).all(), f"{source.name!r} gives numbers not finite")

    def test_nothing_at_all_gives_a_coded_error(self) -> None:
        """An empty file is refused as what it is."""
        self.declared  # noqa: B018 - skips here
        with pytest.raises(SourceError):
            self.read(Source.from_bytes(b"", "empty" + self.capability.format.extensions[0]))

    def test_a_file_cut_off_anywhere_gives_a_scene_or_a_coded_error(self) -> None:
        """Half a file never ends in anything else: no other exception, no warning, no file left."""
        self.declared  # noqa: B018 - skips here
        smallest = min(self.files(), key=lambda source: source.size)
        self._hostile(cut_off(smallest.read()))

    def test_random_bytes_give_a_scene_or_a_coded_error(self) -> None:
        """Neither does noise, alone or in a good file."""
        self.declared  # noqa: B018 - skips here
        self._hostile(random_bytes())
        for source in self.files():
            self._hostile(garbled(source.read()))
