"""What the compose file names is there, and what it opens is open to this machine alone."""

import re

import pytest
import yaml
from deploy_files import COMPOSE, EXAMPLE_SETTINGS, REQUIRED, ROOT, services, variables
from typer.main import get_command

from ragaliq.worker.command import worker

SERVICES = services()
OURS = ("application", "worker")
EACH = pytest.mark.parametrize("name", SERVICES)


def known_options(subcommand=None):
    """The options of `ragaliq worker`, or of a command below it."""
    command = get_command(worker)
    if subcommand:
        command = command.commands[subcommand]
    return {option for parameter in command.params for option in parameter.opts}


def options(command):
    return {part for part in command if part.startswith("--")}


def lines(name):
    return (COMPOSE / name).read_text().splitlines()


@EACH
def test_everything_is_published_to_this_machine_alone(name):
    for port in SERVICES[name].get("ports", []):
        assert port.startswith("127.0.0.1:")
    if name in ("redis", "redis-exporter", "collector", "worker"):
        assert "ports" not in SERVICES[name]


@EACH
def test_every_image_is_built_here_or_pinned(name):
    service = SERVICES[name]
    if "build" in service:
        assert (COMPOSE / service["build"]["context"]).resolve() == ROOT
        assert (ROOT / service["build"]["dockerfile"]).is_file()
        assert f" AS {service['build']['target']}" in (COMPOSE / "Dockerfile").read_text()
    else:
        assert re.search(r":v?\d+\.\d+\.\d+", service["image"])


@EACH
def test_every_file_that_is_mounted_is_there_and_every_volume_is_declared(name):
    declared = yaml.safe_load((COMPOSE / "compose.yml").read_text())["volumes"]
    for mount in SERVICES[name].get("volumes", []):
        source, target, *mode = mount.split(":")
        assert target.startswith("/")
        if source.startswith("."):
            assert (COMPOSE / source).resolve().exists()
            assert mode == ["ro"]
        else:
            assert source in declared


@EACH
def test_a_service_reaches_others_by_names_and_ports_that_they_have(name):
    service = SERVICES[name]
    said = str(service.get("environment", {})) + str(service.get("command", ""))
    for host, port in re.findall(r"(?://|@)([a-z-]+):(\d+)", said):
        assert (host, port) in {("redis", "6379"), ("collector", "4318")}
        assert host in SERVICES
    assert set(service.get("depends_on", [])) <= SERVICES.keys()


def test_what_is_configured_is_where_the_programs_look():
    collector = yaml.safe_load((COMPOSE / "otel-collector.yml").read_text())
    assert collector["receivers"]["otlp"]["protocols"]["http"]["endpoint"].endswith(":4318")
    assert collector["exporters"]["debug"] == {"verbosity": "basic"}  # no text is logged
    prometheus = yaml.safe_load((COMPOSE / "prometheus.yml").read_text())
    targets = {
        target
        for job in prometheus["scrape_configs"]
        for static in job["static_configs"]
        for target in static["targets"]
    }
    served = collector["exporters"]["prometheus"]["endpoint"].rsplit(":")[-1]
    assert targets == {f"collector:{served}", "redis-exporter:9121"}
    mounted = str(SERVICES["prometheus"]["volumes"])
    assert all(f"/etc/prometheus/{rules}:ro" in mounted for rules in prometheus["rule_files"])
    source = yaml.safe_load((COMPOSE / "grafana/datasources/prometheus.yml").read_text())
    assert source["datasources"][0]["url"] == "http://prometheus:9090"
    provider = yaml.safe_load((COMPOSE / "grafana/dashboards/ragaliq.yml").read_text())
    folder = provider["providers"][0]["options"]["path"]
    assert f"{folder}/ragaliq.json" in str(SERVICES["grafana"]["volumes"])


def test_the_worker_is_started_and_asked_with_options_that_it_has():
    service = SERVICES["worker"]
    assert service["command"][:2] == ["ragaliq", "worker"]
    assert options(service["command"]) <= known_options()
    asked = service["healthcheck"]["test"]
    assert asked[:4] == ["CMD", "ragaliq", "worker", "health"]
    assert options(asked) <= known_options("health")


def test_a_worker_has_longer_to_end_than_it_takes_at_most():
    command = SERVICES["worker"]["command"]
    grace = int(command[command.index("--grace") + 1])
    assert int(SERVICES["worker"]["stop_grace_period"].removesuffix("s")) >= grace + 10
    assert SERVICES["worker"]["stop_signal"] == "SIGTERM"


def test_the_variables_of_our_services_are_read_somewhere():
    known = {"ANTHROPIC_API_KEY", "OTEL_METRIC_EXPORT_INTERVAL", "OTEL_SERVICE_NAME"}
    sources = [*(ROOT / "ragaliq").rglob("*.py"), ROOT / "examples/fastapi_service/app.py"]
    read = "".join(path.read_text() for path in sources)
    for name in OURS:
        for variable in SERVICES[name]["environment"].keys() - known:
            stem = variable.removeprefix("RAGALIQ_").lower()
            assert variable in read or f"{stem}: " in read, variable


@pytest.mark.parametrize("name", OURS)
def test_our_services_run_with_nothing_they_do_not_need(name):
    service = SERVICES[name]
    assert service["read_only"]
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]


def test_only_the_workers_have_the_judges_key():
    having = {n for n, s in SERVICES.items() if "ANTHROPIC_API_KEY" in s.get("environment", {})}
    assert having == {"worker"}


def test_no_password_is_written_down_and_a_missing_one_is_an_error():
    said = dict(line.split("=", 1) for line in lines(".env.example") if line and line[0].isalpha())
    assert said.keys() == variables()
    assert [said[name] for name in (*REQUIRED, "ANTHROPIC_API_KEY")] == ["", "", ""]
    with pytest.raises(AssertionError, match="GRAFANA_PASSWORD is not set"):
        services(GRAFANA_PASSWORD="")
    ignored = (ROOT / ".gitignore").read_text().splitlines()
    assert ".env" in ignored
    assert EXAMPLE_SETTINGS.name not in ignored


def test_the_image_copies_what_is_there_and_runs_as_nobody_special():
    text = (COMPOSE / "Dockerfile").read_text()
    copied = {
        source
        for line in text.splitlines()
        if line.startswith("COPY ") and "--from" not in line
        for source in line.split()[1:-1]
    }
    assert all((ROOT / source).exists() for source in copied)
    let_through = {line[1:] for line in lines("Dockerfile.dockerignore") if line[0] == "!"}
    assert copied <= let_through
    assert "USER 10001:10001" in text
    assert "-c constraints.txt" in text
