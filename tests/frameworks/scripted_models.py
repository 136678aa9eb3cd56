"""A server on this machine that speaks OpenAI's and Anthropic's protocols and answers by a script.

Whoever offers it tools is asked to search first; whoever has shown it the documents gets the
answer, in the form that its prompt asks for.
"""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

QUESTION = "How long do refunds take?"
ANSWER = "Refunds are paid within five working days. They come in cash."
TEXTS = (
    "Refunds are paid within five working days.",
    "The shop is open from nine to five on weekdays.",
    "Bicycles can be returned within 30 days.",
)
SEARCH = "refund duration"


def decision(asked, tools):
    """`(text, None)`, or `(None, (name, arguments))` for a call of a tool."""
    prompt = json.dumps(asked, ensure_ascii=False)
    is_shown = TEXTS[0] in prompt
    for name, parameters in tools.items():
        properties = list(parameters.get("properties", {}))
        if not is_shown and name not in {"final_answer", "final_result"}:
            return None, (name, {properties[0]: SEARCH} if properties else {})
        if is_shown and name in {"final_answer", "final_result"}:
            return None, (name, {properties[0]: ANSWER})
    if "[[ ## " in prompt:  # DSPy
        return f"[[ ## answer ## ]]\n{ANSWER}\n\n[[ ## completed ## ]]", None
    if "Action Input:" in prompt and not is_shown:  # CrewAI, where it calls tools by text
        call = f'Action: search\nAction Input: {{"query": "{SEARCH}"}}'
        return f"Thought: I have to search.\n{call}", None
    if "Final Answer:" in prompt:
        return f"Thought: I now can give a great answer\nFinal Answer: {ANSWER}", None
    return ANSWER, None


def openai_chat(body):
    tools = {t["function"]["name"]: t["function"]["parameters"] for t in body.get("tools") or ()}
    text, call = decision(body["messages"], tools)
    message = {"role": "assistant", "content": text}
    if call is not None:
        function = {"name": call[0], "arguments": json.dumps(call[1])}
        message["tool_calls"] = [{"id": "call_1", "type": "function", "function": function}]
    finish = "stop" if call is None else "tool_calls"
    made = {"id": "chat-1", "created": 1_767_225_600, "model": body.get("model", "scripted")}
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    if not body.get("stream"):
        choice = {"index": 0, "message": message, "finish_reason": finish}
        return {**made, "object": "chat.completion", "choices": [choice], "usage": usage}
    if call is not None:
        message["tool_calls"][0]["index"] = 0
    chunk = {**made, "object": "chat.completion.chunk"}
    return [
        {**chunk, "choices": [{"index": 0, "delta": message, "finish_reason": None}]},
        {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]},
        {**chunk, "choices": [], "usage": usage},
    ]


def openai_responses(body):
    tools = {t["name"]: t["parameters"] for t in body.get("tools") or () if "name" in t}
    text, call = decision([body.get("instructions"), body["input"]], tools)
    if call is None:
        content = [{"type": "output_text", "text": text, "annotations": []}]
        item = {"type": "message", "id": "m1", "role": "assistant", "content": content}
    else:
        given = {"name": call[0], "arguments": json.dumps(call[1])}
        item = {"type": "function_call", "id": "f1", "call_id": "call_1", **given}
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1_767_225_600,
        "model": "scripted",
        "status": "completed",
        "output": [{**item, "status": "completed"}],
        "parallel_tool_calls": False,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": 10,
            "output_tokens": 5,
            "total_tokens": 15,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        },
    }


def anthropic_messages(body):
    tools = {tool["name"]: tool["input_schema"] for tool in body.get("tools") or ()}
    text, call = decision([body.get("system"), body["messages"]], tools)
    block = {"type": "text", "text": text}
    if call is not None:
        block = {"type": "tool_use", "id": "toolu_1", "name": call[0], "input": call[1]}
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "scripted",
        "content": [block],
        "stop_reason": "end_turn" if call is None else "tool_use",
        "stop_sequence": None,
        "usage": {"input_tokens": 10, "output_tokens": 5},
    }


ROUTES = {
    "chat/completions": openai_chat,
    "responses": openai_responses,
    "messages": anthropic_messages,
}


def body_of(request):
    """What was posted, as JSON; Node sends it in chunks."""
    length = request.headers["Content-Length"]
    if length is not None:
        return json.loads(request.rfile.read(int(length)))
    data = b""
    while size := int(request.rfile.readline(), 16):
        data += request.rfile.read(size)
        request.rfile.readline()
    request.rfile.readline()
    return json.loads(data)


class Scripted(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = body_of(self)
        answer = next(a for path, a in ROUTES.items() if self.path.endswith(path))(body)
        kind, data = "application/json", json.dumps(answer).encode()
        if isinstance(answer, list):
            kind = "text/event-stream"
            lines = [*map(json.dumps, answer), "[DONE]"]
            data = "".join(f"data: {line}\n\n" for line in lines).encode()
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args):
        pass


@contextmanager
def scripted_models():
    """The server's base URL, without `/v1`."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Scripted) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
