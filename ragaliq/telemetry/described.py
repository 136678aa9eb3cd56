"""How attributes and metrics are described in the catalogue."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Attribute", "AttributeType", "Instrument", "Metric"]

AttributeType = Literal["string", "double", "int", "boolean", "string[]", "double[]"]
Instrument = Literal[
    "histogram", "counter", "gauge", "observable counter", "observable up-down counter"
]


@dataclass(frozen=True)
class Attribute:
    """An attribute of a span or event.

    Attributes:
        name: The name on the wire; `<i>` stands for a number.
        type: Its type.
        meaning: For the documentation.
        content: Whether it is emitted only with content capture.
    """

    name: str
    type: AttributeType
    meaning: str
    content: bool = False


@dataclass(frozen=True)
class Metric:
    """A metric.

    Attributes:
        name: The name on the wire.
        instrument: The kind of instrument.
        unit: In UCUM.
        description: For the documentation and on the wire.
        attributes: Names of its attributes.
        boundaries: A histogram's advised bucket boundaries.
    """

    name: str
    instrument: Instrument
    unit: str
    description: str
    attributes: tuple[str, ...] = ()
    boundaries: tuple[float, ...] = ()
