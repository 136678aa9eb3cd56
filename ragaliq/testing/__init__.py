"""What is needed to test an application with ragaliq in it, without a key and without a network.

`ScriptedJudge` decides as the test says and counts its calls. `MessagesServer` speaks the Messages
API on the loopback interface and `ChatCompletionsServer` the protocol of OpenAI-compatible servers,
so that `ClaudeJudge` and `OpenAICompatibleJudge` can be tried with the real SDKs, and against every
fault in `ragaliq.testing.faults`.
"""

from ragaliq.testing import faults
from ragaliq.testing.batches import BatchesServer
from ragaliq.testing.chat import ChatCompletionsServer, ChatRequest
from ragaliq.testing.messages import MessagesRequest, MessagesServer
from ragaliq.testing.protocol import Reply
from ragaliq.testing.scripted import JudgeCall, PlainScriptedJudge, ScriptedJudge

__all__ = [
    "BatchesServer",
    "ChatCompletionsServer",
    "ChatRequest",
    "JudgeCall",
    "MessagesRequest",
    "MessagesServer",
    "PlainScriptedJudge",
    "Reply",
    "ScriptedJudge",
    "faults",
]
