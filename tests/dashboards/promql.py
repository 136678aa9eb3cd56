"""What a PromQL expression asks for, read with a real parser."""

import re
from dataclasses import dataclass, field

import promql_parser
from exposition import LABEL_VALUES, Exposition

# What Grafana puts in place before it asks.
GRAFANA = {"$__rate_interval": "5m", "$__range": "1h"}


@dataclass
class Query:
    """An expression's selectors, and the labels that its aggregations keep.

    Attributes:
        selectors: Names of samples with their matchers: label, operator, value.
        ranges: Names of samples that are asked for over a range of time.
        kept: Labels that an aggregation keeps, with the samples below it.
        aggregated: Whether it aggregates at all.
    """

    selectors: list[tuple[str, list[tuple[str, str, str]]]] = field(default_factory=list)
    ranges: set[str] = field(default_factory=set)
    kept: list[tuple[set[str], set[str]]] = field(default_factory=list)

    @property
    def names(self) -> set[str]:
        return {name for name, _ in self.selectors}

    @property
    def result_labels(self) -> set[str]:
        return set().union(*(labels for labels, _ in self.kept))


def read(expression: str) -> Query:
    """Parse an expression.

    Raises:
        ValueError: It is none.
    """
    for variable, value in GRAFANA.items():
        expression = expression.replace(variable, value)
    query = Query()

    def visit(node):
        if isinstance(node, promql_parser.MatrixSelector):
            query.ranges |= read(str(node.vector_selector)).names
        elif isinstance(node, promql_parser.VectorSelector):
            matchers = [(m.name, str(m.op), m.value) for m in node.matchers.matchers]
            names = [value for label, _, value in matchers if label == "__name__"]
            matchers = [each for each in matchers if each[0] != "__name__"]
            for name in names[0].split("|") if names else [node.name]:
                query.selectors.append((name, matchers))
        elif isinstance(node, promql_parser.AggregateExpr):
            by = node.modifier
            assert by is None or by.type == promql_parser.AggModifierType.By, "use `by`"
            query.kept.append((set(by.labels) if by else set(), read(str(node.expr)).names))
        return True

    promql_parser.walk(promql_parser.parse(expression), visit)
    return query


def alternatives(value: str) -> list[str]:
    """The values that a plain or `a|b|c` matcher names; none for a variable or a pattern."""
    return value.split("|") if re.fullmatch(r"\w+(\|\w+)*", value) else []


def problems(expression: str, exposition: Exposition) -> list[str]:
    """What is wrong with an expression about these metrics: nothing, hopefully."""
    query, found = read(expression), []
    labels, types = exposition.labels, exposition.types
    everywhere = {"job", "instance"}  # Prometheus adds them to what it scrapes
    for name, matchers in query.selectors:
        if name not in labels:
            found.append(f"there is no {name}")
            continue
        for label, _, value in matchers:
            if label not in labels[name] | everywhere:
                found.append(f"{name} has no label {label}")
            unknown = set(alternatives(value)) - set(LABEL_VALUES.get(label, alternatives(value)))
            found += [f"{label} is never {each}" for each in sorted(unknown)]
        if (types[name] == "gauge") == (name in query.ranges):
            found.append(f"{name}, a {types[name]}, is asked for in the wrong way")
    for kept, below in query.kept:
        possible = everywhere.union(*(labels.get(name, set()) for name in below))
        found += [f"nothing there has a label {each}" for each in sorted(kept - possible)]
    return found + mixed_judges(query)


def mixed_judges(query: Query) -> list[str]:
    """Scores and verdicts of different judges do not compare: they are kept apart."""
    by = {"ragaliq_evaluation_score": "ragaliq_evaluator_id"}
    by["ragaliq_claim_count"] = "ragaliq_claim_decided_by"
    found = []
    for stem, judge in by.items():
        single = all(
            (judge, "MatchOp.Equal") in {(label, op) for label, op, _ in matchers}
            for name, matchers in query.selectors
            if name.startswith(stem)
        )
        for kept, below in query.kept:
            if any(name.startswith(stem) for name in below) and not single and judge not in kept:
                found.append(f"judges are mixed: {stem} without {judge}")
    return found
