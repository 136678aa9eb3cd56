"""What the collector's deployment files name is there, and they agree with each other."""

import inspect
from pathlib import Path

import pytest
import yaml

from ragaliq.collect.command import collect

FOLDER = Path(__file__).parents[2] / "examples/deploy/collector"
OPTIONS = {f"--{name.replace('_', '-')}" for name in inspect.signature(collect).parameters}


def read(name):
    return yaml.safe_load((FOLDER / name).read_text())


def instance():
    _, stateful = yaml.safe_load_all((FOLDER / "kubernetes.yml").read_text())
    return stateful["spec"]


def container(name):
    return next(c for c in instance()["template"]["spec"]["containers"] if c["name"] == name)


@pytest.mark.parametrize(
    "command", [container("ragaliq")["args"], read("compose.yml")["services"]["ragaliq"]["command"]]
)
def test_it_is_started_with_options_that_it_has(command):
    assert command[:2] == ["ragaliq", "collect"]
    assert {word for word in command if word.startswith("--")} <= OPTIONS


@pytest.mark.parametrize("name", ["gateway.yml", "sidecar.yml"])
def test_pipelines_name_what_is_there(name):
    held = read(name)
    for pipeline in held["service"]["pipelines"].values():
        for kind in ("receivers", "processors", "exporters"):
            assert set(pipeline.get(kind, ())) <= held.get(kind, {}).keys()


def test_spans_of_a_trace_go_to_one_instance():
    balancing = read("gateway.yml")["exporters"]["loadbalancing"]
    assert balancing["routing_key"] == "traceID"
    service, _ = yaml.safe_load_all((FOLDER / "kubernetes.yml").read_text())
    assert service["spec"]["clusterIP"] is None or service["spec"]["clusterIP"] == "None"
    assert instance()["serviceName"] == service["metadata"]["name"]
    page = (FOLDER.parents[2] / "docs/pages/collector.md").read_text()
    assert f"hostname: {service['metadata']['name']}" in page


def test_each_instance_has_a_spool_of_its_own_that_outlives_it():
    spec = instance()
    args = container("ragaliq")["args"]
    spool = args[args.index("--spool") + 1]
    (mount,) = [m for m in container("ragaliq")["volumeMounts"] if spool.startswith(m["mountPath"])]
    assert mount["name"] in {v["metadata"]["name"] for v in spec["volumeClaimTemplates"]}


def test_the_sidecar_waits_and_sends_again_what_is_refused():
    exporter = read("sidecar.yml")["exporters"]["otlphttp"]
    assert exporter["retry_on_failure"]["enabled"]
    assert exporter["sending_queue"]["enabled"]
