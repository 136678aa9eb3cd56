"""The judges' APIs on the loopback interface: the real SDKs against every fault, without a key.

`MessagesServer` speaks Claude's Messages API, `BatchesServer` its batches too,
`ChatCompletionsServer` the protocol of OpenAI-compatible servers; `faults` has ways to fail.
"""

from loopback import faults
from loopback.batches import BatchesServer
from loopback.chat import ChatCompletionsServer, ChatRequest
from loopback.messages import MessagesRequest, MessagesServer
from loopback.protocol import Reply

__all__ = [
    "BatchesServer",
    "ChatCompletionsServer",
    "ChatRequest",
    "MessagesRequest",
    "MessagesServer",
    "Reply",
    "faults",
]
