"""What the Kubernetes manifests name is there, and they agree with each other."""

import importlib.util

import pytest
import yaml
from deploy_files import KUBERNETES, SCALING, compact, container, deployments, environment, objects
from test_compose import known_options, options

from ragaliq.worker.worker import WorkerSettings

WORKER, APPLICATION = deployments()["ragaliq-worker"], deployments()["library"]
EVERYTHING = [each for folder in ("base", *SCALING) for each in objects(folder)]


@pytest.fixture
def worker():
    return container(WORKER)


def spec(deployment):
    return deployment["spec"]["template"]["spec"]


def probes():
    return [container(WORKER)[kind] for kind in ("readinessProbe", "livenessProbe")]


def test_the_worker_is_started_and_asked_with_options_that_it_has(worker):
    assert worker["args"][:2] == ["ragaliq", "worker"]
    assert options(worker["args"]) <= known_options()
    for probe in probes():
        assert probe["exec"]["command"][:3] == ["ragaliq", "worker", "health"]
        assert options(probe["exec"]["command"]) <= known_options("health")


def test_the_workers_settings_are_found_where_it_looks(worker, monkeypatch):
    module, name = worker["args"][worker["args"].index("--app") + 1].split(":")
    (mount,) = [m for m in worker["volumeMounts"] if m["mountPath"] == worker["workingDir"]]
    (volume,) = [v for v in spec(WORKER)["volumes"] if v["name"] == mount["name"]]
    made = yaml.safe_load((KUBERNETES / "base/kustomization.yaml").read_text())
    (generated,) = made["configMapGenerator"]
    assert volume["configMap"]["name"] == generated["name"]
    assert generated["files"] == [f"{module}.py"]
    monkeypatch.setenv("LIMITS_URL", "redis://127.0.0.1:1/0")
    found = importlib.util.spec_from_file_location(module, KUBERNETES / f"base/{module}.py")
    settings = importlib.util.module_from_spec(found)
    found.loader.exec_module(settings)
    made = getattr(settings, name)
    assert isinstance(made, WorkerSettings)
    # A share for each worker that the autoscalers may start.
    (scaled,) = [o for o in objects("keda-redis") if o["kind"] == "ScaledObject"]
    assert made.budget.local_share * scaled["spec"]["maxReplicaCount"] <= 1


def test_a_worker_has_longer_to_end_than_it_takes_at_most(worker):
    grace = int(worker["args"][worker["args"].index("--grace") + 1])
    assert spec(WORKER)["terminationGracePeriodSeconds"] >= grace + 10


def test_a_broker_that_is_away_for_minutes_restarts_no_worker(worker):
    liveness = worker["livenessProbe"]
    assert liveness["periodSeconds"] * liveness["failureThreshold"] >= 600
    assert all(probe["timeoutSeconds"] >= 15 for probe in probes())  # each starts a process


@pytest.mark.parametrize("deployment", [WORKER, APPLICATION], ids=["worker", "application"])
def test_a_pod_may_do_nothing_it_need_not(deployment):
    pod, inside = spec(deployment)["securityContext"], container(deployment)["securityContext"]
    assert pod["runAsNonRoot"]
    assert pod["runAsUser"] == 10001
    assert pod["seccompProfile"] == {"type": "RuntimeDefault"}
    assert inside == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert spec(deployment)["automountServiceAccountToken"] is False
    assert {"requests", "limits"} == container(deployment)["resources"].keys()


def test_keys_and_addresses_are_references_and_only_the_workers_have_the_judges_key():
    secret = {"RAGALIQ_BROKER_URL", "LIMITS_URL", "ANTHROPIC_API_KEY", "SERVICE_BROKER"}
    for deployment in (WORKER, APPLICATION):
        for name, variable in environment(container(deployment)).items():
            assert (name in secret) == ("secretKeyRef" in variable.get("valueFrom", {}))
    assert "ANTHROPIC_API_KEY" not in environment(container(APPLICATION))
    assert "Secret" not in {each["kind"] for each in EVERYTHING}
    assert "://:" not in compact(EVERYTHING)


def test_services_and_disruption_budgets_select_pods_that_are_there():
    labels = [d["spec"]["template"]["metadata"]["labels"] for d in (WORKER, APPLICATION)]
    selecting = [o for o in objects("base") if o["kind"] in ("Service", "PodDisruptionBudget")]
    assert len(selecting) == 3
    for each in selecting:
        selector = each["spec"]["selector"]
        assert selector.get("matchLabels", selector) in labels


@pytest.mark.parametrize("folder", SCALING)
def test_the_workers_are_scaled_by_the_queue_and_by_nothing_else(folder):
    (scaled,) = [o for o in objects(folder) if o["kind"].startswith(("Scaled", "Horizontal"))]
    assert scaled["spec"]["scaleTargetRef"]["name"] == WORKER["metadata"]["name"]
    # An apply would undo what the autoscaler set.
    assert "replicas" not in WORKER["spec"]
    (trigger,) = scaled["spec"].get("triggers") or scaled["spec"]["metrics"]
    said = trigger.get("metadata") or trigger["external"]["metric"]["selector"]["matchLabels"]
    queue = said.get("stream") or said.get("queueName") or said["key"]
    assert queue == "ragaliq"
    assert scaled["spec"].get("minReplicaCount", scaled["spec"].get("minReplicas")) == 1
    for reference in [o for o in objects(folder) if o["kind"] == "TriggerAuthentication"]:
        assert reference["metadata"]["name"] == trigger["authenticationRef"]["name"]
        assert {s["name"] for s in reference["spec"]["secretTargetRef"]} == {"ragaliq-broker"}


def test_every_folder_for_scaling_builds_on_the_base():
    for folder in SCALING:
        made = yaml.safe_load((KUBERNETES / folder / "kustomization.yaml").read_text())
        assert made["resources"] == ["../base", "scaling.yaml"]
