"""A real Prometheus: it reads the files, scrapes the exporter, and every panel gets an answer."""

import contextlib
import json
import re
import subprocess
import sys
import threading
import time
import urllib.parse
import urllib.request
from pathlib import Path

import pytest
import yaml
from files import FOLDER, ROOT, alerts, load, targets
from prometheus_client import start_http_server

sys.path.insert(0, str(ROOT / "tests/backends"))

from servers import installed, serving

from free_ports import free_port

pytestmark = pytest.mark.backends
HERE = Path(__file__).parent
RULES = FOLDER / "prometheus-alerts.yml"
# What Grafana would put in place; Prometheus here asks every second.
CHOSEN = {"$__rate_interval": "10s", "$__range": "10s", "$judge": "x"}


def promtool(*arguments):
    program = installed("prometheus", "usr", "bin", "promtool")
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_promtool_finds_nothing_wrong_with_the_rules_and_the_settings():
    assert f"{len(alerts())} rules found" in promtool("check", "rules", "--lint=all", str(RULES))
    promtool("check", "config", str(FOLDER / "prometheus.yml"))


def test_alerts_fire_when_they_should_and_only_then(tmp_path):
    cases = (HERE / "alerts_test.yml").read_text()
    tried = set(re.findall(r"alertname: (\w+)", cases))
    assert tried == {rule["alert"] for rule in alerts()}
    file = tmp_path / "alerts_test.yml"
    file.write_text(cases.replace("RULES", str(RULES)))
    promtool("test", "rules", str(file))


@pytest.fixture(scope="module")
def prometheus(exposition, tmp_path_factory):
    """Prometheus with our rules, reading our metrics once a second."""
    with contextlib.ExitStack() as stack:
        exporter = start_http_server(0, "127.0.0.1")[0]
        stack.callback(exporter.server_close)
        stack.callback(exporter.shutdown)
        stack.callback(_keep_happening(exposition).set)
        folder = tmp_path_factory.mktemp("prometheus")
        settings = load("prometheus.yml")
        settings["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
        settings["rule_files"] = [str(RULES)]
        address = f"127.0.0.1:{exporter.server_port}"
        settings["scrape_configs"][0]["static_configs"] = [{"targets": [address]}]
        (folder / "prometheus.yml").write_text(yaml.safe_dump(settings))
        address = f"127.0.0.1:{free_port()}"
        command = [installed("prometheus", "usr", "bin", "prometheus")]
        command += [f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data"]
        command += [f"--web.listen-address={address}"]
        stack.enter_context(serving(command, f"http://{address}/-/ready", folder))
        yield f"http://{address}"


def _keep_happening(exposition):
    stop = threading.Event()

    def run():
        while not stop.wait(0.2):
            exposition.record()

    threading.Thread(target=run, daemon=True).start()
    return stop


def ask(prometheus, expression):
    for variable, value in CHOSEN.items():
        expression = expression.replace(variable, value)
    expression = re.sub(r"\$\w+", ".*", expression)
    query = urllib.parse.urlencode({"query": expression})
    with urllib.request.urlopen(f"{prometheus}/api/v1/query?{query}", timeout=10) as answer:
        return json.load(answer)["data"]["result"]


@pytest.mark.parametrize(("title", "expression", "legend"), targets())
def test_a_panel_gets_numbers_with_the_labels_of_its_legend(prometheus, title, expression, legend):
    deadline = time.monotonic() + 30
    while not (found := ask(prometheus, expression)):
        assert time.monotonic() < deadline, f"nothing in {title}"
        time.sleep(0.5)
    for series in found:
        assert set(re.findall(r"{{(\w+)}}", legend)) <= series["metric"].keys()
        assert series["value"][1] != "NaN"


def test_the_rules_are_evaluated_without_an_error(prometheus):
    with urllib.request.urlopen(f"{prometheus}/api/v1/rules", timeout=10) as answer:
        groups = json.load(answer)["data"]["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    assert {rule["name"] for rule in rules} == {rule["alert"] for rule in alerts()}
    assert {rule.get("lastError", "") for rule in rules} == {""}
