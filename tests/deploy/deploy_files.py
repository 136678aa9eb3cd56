"""The files under examples/deploy/, read as their programs read them."""

import json
import re
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
COMPOSE = ROOT / "examples/deploy/compose"
KUBERNETES = ROOT / "examples/deploy/kubernetes"
SCALING = ("keda-redis", "keda-rabbitmq", "hpa")
EXAMPLE_SETTINGS = COMPOSE / ".env.example"

# What a user must say, and nothing else: see .env.example.
REQUIRED = {"REDIS_PASSWORD": "5ecret", "GRAFANA_PASSWORD": "5ecret"}

_VARIABLE = re.compile(r"\$\$|\$\{(\w+)(?::([-?])([^}]*))?\}")


def interpolated(text: str, given: dict[str, str]) -> str:
    """What docker compose makes of `${NAME}`, `${NAME:-default}`, `${NAME:?message}` and `$$`."""

    def value(found: re.Match[str]) -> str:
        name, kind, rest = found.groups()
        if name is None:
            return "$"
        if given.get(name):
            return given[name]
        assert kind == "-", f"{name} is not set: {rest}"
        return rest

    return _VARIABLE.sub(value, text)


def variables() -> set[str]:
    """The names that the compose file takes from its surroundings."""
    found = _VARIABLE.findall((COMPOSE / "compose.yml").read_text())
    return {name for name, *_ in found if name}


def services(**given: str) -> dict[str, dict]:
    """The compose file's services, with its variables put in place."""
    text = (COMPOSE / "compose.yml").read_text()
    # In a value, not in the text: a password must not become YAML.
    return {
        name: _each_string(service, REQUIRED | given)
        for name, service in yaml.safe_load(text)["services"].items()
    }


def _each_string(node, given):
    if isinstance(node, str):
        return interpolated(node, given)
    if isinstance(node, dict):
        return {key: _each_string(value, given) for key, value in node.items()}
    return [_each_string(each, given) for each in node] if isinstance(node, list) else node


def objects(folder: str) -> list[dict]:
    """The Kubernetes objects of a folder, without those it builds on."""
    listed = yaml.safe_load((KUBERNETES / folder / "kustomization.yaml").read_text())["resources"]
    files = [KUBERNETES / folder / name for name in listed if name.endswith(".yaml")]
    return [each for file in files for each in yaml.safe_load_all(file.read_text())]


def deployments() -> dict[str, dict]:
    return {o["metadata"]["name"]: o for o in objects("base") if o["kind"] == "Deployment"}


def container(deployment: dict) -> dict:
    (only,) = deployment["spec"]["template"]["spec"]["containers"]
    return only


def environment(of: dict) -> dict[str, dict]:
    return {each["name"]: each for each in of["env"]}


def compact(node: object) -> str:
    return json.dumps(node, sort_keys=True)
