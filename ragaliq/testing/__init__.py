"""What is needed to test an application with ragaliq in it, without a key and without a network.

`ScriptedJudge` decides as it is told and counts its calls. `MessagesServer` speaks the Messages API
on the loopback interface, so that `ClaudeJudge` and the real SDK can be tried, also against every
fault in `ragaliq.testing.faults`.
"""

from ragaliq.testing import faults
from ragaliq.testing.messages import MessagesRequest, Reply
from ragaliq.testing.scripted import JudgeCall, PlainScriptedJudge, ScriptedJudge
from ragaliq.testing.server import MessagesServer

__all__ = [
    "JudgeCall",
    "MessagesRequest",
    "MessagesServer",
    "PlainScriptedJudge",
    "Reply",
    "ScriptedJudge",
    "faults",
]
