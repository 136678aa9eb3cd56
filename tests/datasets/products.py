"""Loopback servers that answer as Phoenix, MLflow and Langfuse do where traces are read.

Endpoints and forms are those of Phoenix 20.26.1 and MLflow 3.17.2, as they answered, and of the
client langfuse 5.0.4.
"""

import base64
from datetime import UTC, datetime
from urllib.parse import parse_qs, urlsplit

from products_receivers import Receiver


def iso(seconds):
    return datetime.fromtimestamp(seconds, UTC).isoformat()


class Run:
    """One answered question: a chain around a retriever and a model."""

    def __init__(self, number, question, answer, chunks, *, began=1_780_000_000.0, parent=None):
        self.trace_id = f"{number:032x}"
        self.span_id = f"{number:014x}01"
        self.question, self.answer, self.chunks, self.parent = question, answer, chunks, parent
        self.began = began + number

    def spans(self):
        """Of each span: its place, kind, parent, attributes of OpenInference."""
        prompt = "\n".join([*self.chunks, self.question])
        documents = {
            f"retrieval.documents.{n}.document.content": text for n, text in enumerate(self.chunks)
        }
        asked = {"input.value": self.question}
        message = "llm.input_messages.0.message"
        reply = "llm.output_messages.0.message"
        return [
            ("shop", "CHAIN", self.parent, asked | {"output.value": self.answer}),
            ("retriever", "RETRIEVER", self.span_id, asked | documents),
            (
                "model",
                "LLM",
                self.span_id,
                {
                    f"{message}.role": "user",
                    f"{message}.content": prompt,
                    f"{reply}.role": "assistant",
                    f"{reply}.content": self.answer,
                },
            ),
        ]

    def ids(self):
        return [f"{self.span_id[:-1]}{place}" for place in (1, 2, 3)]


class Product(Receiver):
    """What the products share: runs, what is said of them, pages of two."""

    page = 2

    def __init__(self, *runs):
        super().__init__()
        self.runs = sorted(runs, key=lambda run: -run.began)  # the newest first
        self.said = []

    def reply(self, method, path, body):
        parts = urlsplit(path)
        return self.answer(method, parts.path, parse_qs(parts.query), body)

    def cut(self, found, cursor):
        start = int(cursor or 0)
        rest = start + self.page
        return found[start:rest], str(rest) if rest < len(found) else None


class PhoenixProduct(Product):
    def answer(self, method, path, query, body):
        if (method, path) == ("POST", "/v1/span_annotations"):
            for each in body["data"]:
                self.said = [
                    old
                    for old in self.said
                    if (old["span_id"], old["name"], old["identifier"])
                    != (each["span_id"], each["name"], each["identifier"])
                ] + [each]
            return 200, {"data": []}
        project, _, what = path.removeprefix("/v1/projects/").partition("/")
        if project != "my%20shop":
            return 404, {"detail": "zebra"}
        if what == "spans":
            spans = [
                {
                    "name": name,
                    "context": {"trace_id": run.trace_id, "span_id": span_id},
                    "span_kind": kind,
                    "parent_id": parent,
                    "start_time": iso(run.began),
                    "end_time": iso(run.began + 1),
                    "status_code": "OK",
                    "attributes": attributes,
                    "events": [],
                }
                for run in self.runs
                for span_id, (name, kind, parent, attributes) in zip(
                    run.ids(), run.spans(), strict=True
                )
                if query.get("start_time", [""])[0] <= iso(run.began)
            ]
            page, cursor = self.cut(spans, query.get("cursor", [None])[0])
            return 200, {"data": page, "next_cursor": cursor}
        if what == "span_annotations":
            found = [each for each in self.said if each["span_id"] in query["span_ids"]]
            if not found:
                return 404, {}
            page, cursor = self.cut(found, query.get("cursor", [None])[0])
            return 200, {"data": page, "next_cursor": cursor}
        return 404, {}

    def annotate(self, run, name, value):
        result = {"label": value} if isinstance(value, str) else {"score": value}
        self.said.append(
            {
                "span_id": run.span_id,
                "name": name,
                "annotator_kind": "HUMAN",
                "identifier": "px-app",
                "user_id": "ana",
                "result": result,
            }
        )


class MlflowProduct(Product):
    def answer(self, method, path, query, body):
        if path == "/api/2.0/mlflow/experiments/get-by-name":
            if query["experiment_name"] != ["my shop"]:
                return 404, {"error_code": "RESOURCE_DOES_NOT_EXIST"}
            return 200, {"experiment": {"experiment_id": "7", "name": "my shop"}}
        infos = [
            {
                "trace_id": f"tr-{run.trace_id}",
                "assessments": [e for e in self.said if e["trace_id"] == f"tr-{run.trace_id}"],
            }
            for run in self.runs
        ]
        if path == "/api/3.0/mlflow/traces/search":
            assert body["locations"][0]["mlflow_experiment"] == {"experiment_id": "7"}
            page, token = self.cut(infos, body.get("page_token"))
            return 200, {"traces": page, **({"next_page_token": token} if token else {})}
        if path == "/api/3.0/mlflow/traces/batchGet":
            wanted = query["trace_ids"]
            return 200, {
                "traces": [
                    {"trace_info": info, "spans": list(self._otlp(run))}
                    for info, run in zip(infos, self.runs, strict=True)
                    if info["trace_id"] in wanted
                ]
            }
        trace = path.removeprefix("/api/3.0/mlflow/traces/").removesuffix("/assessments")
        if method == "POST":
            self.said.append({**body["assessment"], "assessment_id": f"a-{len(self.said)}"})
            return 200, {"assessment": self.said[-1]}
        return 200, {"trace": {"trace_info": next(i for i in infos if i["trace_id"] == trace)}}

    @staticmethod
    def _otlp(run):
        def encoded(identifier):
            return base64.b64encode(bytes.fromhex(identifier)).decode()

        for span_id, (name, kind, parent, attributes) in zip(run.ids(), run.spans(), strict=True):
            yield {
                "trace_id": encoded(run.trace_id),
                "span_id": encoded(span_id),
                "parent_span_id": encoded(parent) if parent else "",
                "name": name,
                "start_time_unix_nano": int(run.began * 1e9),
                "end_time_unix_nano": int(run.began * 1e9) + 1_000_000_000,
                "attributes": [
                    {"key": key, "value": {"string_value": value}}
                    for key, value in {**attributes, "openinference.span.kind": kind}.items()
                ],
            }

    def annotate(self, run, name, value):
        self.said.append(
            {
                "trace_id": f"tr-{run.trace_id}",
                "assessment_name": name,
                "source": {"source_type": "HUMAN", "source_id": "ana"},
                "feedback": {"value": value},
            }
        )


class LangfuseProduct(Product):
    def answer(self, method, path, query, body):
        if (method, path) == ("POST", "/api/public/scores"):
            self.said += [{**each, "source": "API"} for each in body]
            return 202, {}
        cursor = query.get("cursor", [None])[0]
        if path == "/api/public/v2/observations":
            page, cursor = self.cut([o for run in self.runs for o in self._seen(run)], cursor)
        elif path == "/api/public/v3/scores":
            wanted = query["traceId"][0].split(",")
            found = [self._v3(each) for each in self.said if each["traceId"] in wanted]
            page, cursor = self.cut(found, cursor)
        else:
            return 404, {}
        return 200, {"data": page, "meta": {"limit": self.page, "cursor": cursor}}

    @staticmethod
    def _seen(run):
        """Observations, whose input and output are texts of JSON."""
        for span_id, (name, kind, parent, held) in zip(run.ids(), run.spans(), strict=True):
            texts = {
                "CHAIN": (run.question, run.answer),
                "RETRIEVER": (run.question, [{"page_content": text} for text in run.chunks]),
                "LLM": (
                    [{"role": "user", "content": held.get("llm.input_messages.0.message.content")}],
                    {"role": "assistant", "content": run.answer},
                ),
            }
            yield {
                "id": span_id,
                "traceId": run.trace_id,
                "projectId": "p",
                "parentObservationId": parent,
                "type": {"LLM": "GENERATION"}.get(kind, kind),
                "name": name,
                "level": "DEFAULT",
                "startTime": iso(run.began),
                "endTime": iso(run.began + 1),
                "input": _json(texts[kind][0]),
                "output": _json(texts[kind][1]),
            }

    def _v3(self, score):
        about = {"kind": "trace", "id": score["traceId"]}
        if score.get("observationId"):
            about = {
                "kind": "observation",
                "id": score["observationId"],
                "traceId": score["traceId"],
            }
        now = iso(self.runs[0].began)
        return {
            "id": score.get("id", "s"),
            "projectId": "p",
            "name": score["name"],
            "value": score["value"],
            "dataType": score.get("dataType", "NUMERIC"),
            "source": score["source"],
            "timestamp": now,
            "createdAt": now,
            "updatedAt": now,
            "environment": "default",
            "metadata": score.get("metadata", {}),
            "subject": about,
            "authorUserId": score.get("author"),
        }

    def annotate(self, run, name, value):
        kinds = {str: "CATEGORICAL", bool: "BOOLEAN"}
        self.said.append(
            {
                "traceId": run.trace_id,
                "name": name,
                "value": value,
                "dataType": kinds.get(type(value), "NUMERIC"),
                "source": "ANNOTATION",
                "author": "ana",
            }
        )


def _json(value):
    import json

    return value if isinstance(value, str) else json.dumps(value)
