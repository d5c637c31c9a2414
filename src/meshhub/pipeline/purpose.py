"""Purpose of a request: its own options, what it writes, and the steps and the ending of its chain."""

# why this way: docs/decisions/0055-purposes.md
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

from msgspec import Struct

from meshhub.model.capabilities import Check, Format, Memory, NoOptions, Operation, Reader, Writer
from meshhub.model.chain import Ending, Step
from meshhub.model.options import OptionField, Value, option_fields
from meshhub.model.plans import Caller
from meshhub.pipeline.declarations import Declarations, Declared

Options: TypeAlias = Mapping[str, Value]
"""Parsed options by name."""

Writers: TypeAlias = tuple[Declared[Writer] | None, Declared[Writer] | None]
"""Writer of the result, and that of a file which is only measured."""

Checks: TypeAlias = tuple[Declared[Check], ...]

End: TypeAlias = tuple[tuple[Step, ...], Ending]
"""Last steps of a chain, and its ending."""


@dataclass(frozen=True)
class Purpose:
    """Base class of purposes. Each is a file of `pipeline/purposes/`, whose `PURPOSE` is found by itself.

    Attributes:
        id: Name of the file.
    """

    id: str

    options: ClassVar[type[Struct]] = NoOptions
    """Options that belong to the purpose and not to a plug-in."""

    output: ClassVar[Format | None] = None
    """Format of what the host itself writes."""

    runs_operations: ClassVar[bool] = True
    """Whether operations run that options name."""

    uses_checks: ClassVar[bool] = False
    """Whether the options of checks are options of the request."""

    expands_recipes: ClassVar[bool] = True
    """Whether a recipe adds all of its options; otherwise only those of the host and of readers."""

    shows_scene: ClassVar[bool] = True
    """Whether the scene of the file is only shown, so that the reader gets its display options."""

    reads_features: ClassVar[bool] = True
    """Whether the result has a place for the feature table of the reader."""

    target_field: ClassVar[Literal["required", "optional"] | None] = None
    """Whether forms have the field `target`."""

    report_field: ClassVar[Literal["flag", "format"] | None] = None
    """What the field `report` of forms is: a flag that adds report.json to a ZIP, or the format of a report for people.
    """

    main_field: ClassVar[Literal["file", "files"] | None] = None
    """Field with the files in the form of a job; None: any."""

    combines: ClassVar[bool] = False
    """Whether all files of a form become one scene."""

    def own_fields(self, declarations: Declarations) -> dict[str, OptionField]:
        """Return the options by name that are none of conversions: its own, and those of checks."""
        fields = {field.name: field for field in option_fields(self.options)}
        return fields | declarations.check_fields() if self.uses_checks else fields

    def check_options(self, options: Options) -> None:
        """Check its own options beyond their types. Raises InvalidOption."""

    def choose_writers(self, declarations: Declarations, target: str, caller: Caller) -> Writers:
        """Return the writers. Raises UnsupportedTarget, PremiumRequired, MissingDependency."""
        return None, None

    def choose_checks(self, declarations: Declarations, options: Options, caller: Caller) -> Checks:
        """Return the checks that run. Raises InvalidOption, PremiumRequired, MissingDependency."""
        return ()

    def adapt_reading(self, declarations: Declarations, reader: Reader, options: Options) -> Options:
        """Return the options with which a file is read. Raises InvalidOption."""
        return options

    def make_end(self, checked: CheckedRequest, options: Options) -> End:
        """Return the last steps of a chain, and its ending."""
        raise NotImplementedError


@dataclass(frozen=True)
class CheckedRequest:
    """A request that is valid for any source, and what it was checked against.

    `measured` is the writer of the file whose size a preview states.
    """

    declarations: Declarations
    caller: Caller
    target: str
    purpose: Purpose
    writer: Declared[Writer] | None
    operations: tuple[Declared[Operation], ...]
    options: Options
    from_recipe: frozenset[str] = frozenset()
    checks: Checks = ()
    measured: Declared[Writer] | None = None

    @property
    def output(self) -> Format | None:
        """Format of the file that the chain writes; None if it writes none."""
        return self.purpose.output if self.writer is None else self.writer.capability.format

    @property
    def memory(self) -> Memory:
        """Memory of the request beyond that of a conversion.

        Two checks may run at the same time, but all checks together need as much as the largest.
        """
        capabilities = [*self.capabilities, *(check.capability for check in self.checks)]
        options = [name for name, value in self.options.items() if value]
        return Memory().including(capability.memory.of(options) for capability in capabilities)

    @property
    def capabilities(self) -> list[Writer | Operation]:
        """Operations and writers that the request names."""
        operations: list[Writer | Operation] = [operation.capability for operation in self.operations]
        return [*operations, *(writer.capability for writer in (self.measured, self.writer) if writer is not None)]
