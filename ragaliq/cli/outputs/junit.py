"""JUnit XML, which every CI system shows: a suite a metric, a test case a case."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

from ragaliq.cli.outputs.results import Results
from ragaliq.core.results import EvaluationResult
from ragaliq.records import EvaluationRecord

__all__ = ["write_junit"]

# What XML 1.0 cannot hold, not even escaped.
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_MAX_CLAIMS = 20


def write_junit(results: Results, path: Path) -> None:
    """Write the results. A low score is a failure, a judge's failure an error."""
    suites: dict[str, ET.Element] = {}
    counts: dict[str, dict[str, int]] = {}
    for record in results.records:
        for name, result in record.results.items():
            suite = suites.setdefault(name, ET.Element("testsuite", name=name))
            kind = _add(suite, record, name, result)
            counted = counts.setdefault(name, dict.fromkeys(("tests", *_KINDS), 0))
            counted["tests"] += 1
            if kind:
                counted[kind] += 1
    root = ET.Element("testsuites", name="ragaliq")
    for name, suite in suites.items():
        suite.attrib.update({kind: str(count) for kind, count in counts[name].items()})
        root.append(suite)
    ET.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)


_KINDS = ("failures", "errors", "skipped")


def _add(suite: ET.Element, record: EvaluationRecord, metric: str, result: EvaluationResult) -> str:
    """Add a test case; returns which count it belongs to."""
    case = ET.SubElement(
        suite,
        "testcase",
        classname=_xml(f"ragaliq.{metric}"),
        name=_xml(record.run.run_id),
        time=f"{result.duration or 0.0:.3f}",
    )
    if result.error_type is not None:
        ET.SubElement(case, "error", type=_xml(result.error_type), message=result.status.value)
        return "errors"
    if result.score is None:
        ET.SubElement(case, "skipped", message=result.status.value)
        return "skipped"
    if result.passed:
        return ""
    message = f"{result.score:.3f}, passes from {result.threshold:g}"
    failure = ET.SubElement(case, "failure", message=message)
    failure.text = _xml("\n".join(_claims(result)))
    return "failures"


def _claims(result: EvaluationResult) -> Iterator[str]:
    claims = [each for each in enumerate(result.claims, 1) if each[1].verdict != "SUPPORTED"]
    for number, claim in claims[:_MAX_CLAIMS]:
        yield f"{claim.verdict}: {claim.claim or f'claim {number}'}"
    if len(claims) > _MAX_CLAIMS:
        yield f"and {len(claims) - _MAX_CLAIMS} more"


def _xml(text: str) -> str:
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)
