"""Loopback servers that speak the endpoints the sinks use, with the faults of real ones."""

from __future__ import annotations

import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from langsmith.schemas import FeedbackCreate

__all__ = ["Fault", "LangSmithReceiver", "LangfuseReceiver", "MLflowReceiver", "PhoenixReceiver"]


class Fault:
    """A reply in the place of the usual one; `status` None hangs until the server stops."""

    def __init__(self, status=None, headers=None, body=b'{"detail": "zebra sk-secret"}'):
        self.status, self.headers, self.body = status, headers or {}, body


class Receiver:
    """Listens on a free port; faults are used up one a request."""

    protocol = "HTTP/1.1"

    def __init__(self):
        self.requests = []
        self.faults = []
        self.stopping = threading.Event()
        receiver = self

        class Connection(BaseHTTPRequestHandler):
            protocol_version = receiver.protocol
            disable_nagle_algorithm = True  # headers and body are sent apart

            def do_POST(self):
                receiver.serve(self)

            do_GET = do_POST  # noqa: N815 - the name http.server looks for

            def log_message(self, *_): ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Connection)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def serve(self, connection):
        size = int(connection.headers.get("content-length", 0))
        body = json.loads(connection.rfile.read(size)) if size else None
        headers = {name.lower(): value for name, value in connection.headers.items()}
        self.requests.append((connection.command, connection.path, headers, body))
        fault = self.faults.pop(0) if self.faults else None
        if fault is None:
            status, answer = self.reply(connection.command, connection.path, body)
            fault = Fault(status, body=json.dumps(answer).encode())
        if fault.status is None:
            self.stopping.wait(60.0)
            connection.close_connection = True
            return
        connection.send_response(fault.status)
        for name, value in fault.headers.items():
            connection.send_header(name, value)
        connection.send_header("content-length", str(len(fault.body)))
        connection.end_headers()
        connection.wfile.write(fault.body)

    def stop(self):
        self.stopping.set()
        self._server.shutdown()
        self._server.server_close()


class PhoenixReceiver(Receiver):
    """Keeps one annotation for each span, name and identifier; refuses names it does not like."""

    def __init__(self):
        super().__init__()
        self.kept = {}

    def reply(self, method, path, body):
        if (method, path) != ("POST", "/v1/span_annotations?sync=false"):
            return 404, {}
        if any(annotation["name"] == "unwelcome" for annotation in body["data"]):
            return 422, {}
        for annotation in body["data"]:
            key = annotation["span_id"], annotation["name"], annotation["identifier"]
            self.kept[key] = annotation
        return 200, {"data": []}


class LangfuseReceiver(Receiver):
    """Keeps one score for each id; rejects names it does not like; may know no lists."""

    def __init__(self, *, lists=True):
        super().__init__()
        self.kept, self._lists = {}, lists

    def reply(self, method, path, body):
        if (method, path) != ("POST", "/api/public/scores"):
            return 404, {}
        if isinstance(body, list) and not self._lists:
            return 400, {}
        scores = body if isinstance(body, list) else [body]
        good = [score for score in scores if score["name"] != "unwelcome"]
        self.kept.update({score["id"]: score for score in good})
        rejected = len(scores) - len(good)
        if rejected:
            errors = [{"message": "no"}] * rejected
            return 207, {"accepted": len(good), "rejected": rejected, "errors": errors}
        return 202, {"message": "Accepted"}


class LangSmithReceiver(Receiver):
    """Keeps feedback by its id, once, in the form that LangSmith's own client gives it."""

    def __init__(self):
        super().__init__()
        self.kept = {}

    def reply(self, method, path, body):
        if (method, path) != ("POST", "/feedback"):
            return 404, {}
        FeedbackCreate(**{"trace_id": None, **body})
        if body["id"] in self.kept:
            return 409, {}
        self.kept[body["id"]] = body
        return 200, body


class MLflowReceiver(Receiver):
    """Knows traces by id, gives each assessment an id of its own, and never updates one."""

    def __init__(self):
        super().__init__()
        self.traces = {}

    def reply(self, method, path, body):
        match = re.fullmatch(r"/api/3\.0/mlflow/traces/(tr-[0-9a-f]{32})(/assessments)?", path)
        if match is None or match[1] not in self.traces:
            return 404, {"error_code": "RESOURCE_DOES_NOT_EXIST"}
        assessments = self.traces[match[1]]
        if method == "GET":
            info = {"trace_id": match[1], "assessments": assessments}
            return 200, {"trace": {"trace_info": info}}
        given = {**body["assessment"], "assessment_id": f"a-{len(assessments)}"}
        assessments.append(given)
        return 200, {"assessment": given}
