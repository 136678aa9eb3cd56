"""A guard for agents made with `langchain.agents.create_agent`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import uuid4

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, RemoveMessage, ToolMessage

from langchain_ragaliq._private import CONFIG
from langchain_ragaliq.guard import note_guarded
from langchain_ragaliq.judge import with_judge
from langchain_ragaliq.reading import FEEDBACK, READER
from langchain_ragaliq.replacing import annotated, answer_of
from ragaliq import ConfigurationError, Guard, GuardResult, Monitor
from ragaliq.capture import Found, RunLog, takes_only

try:
    from langchain.agents.middleware import AgentMiddleware, hook_config
except ModuleNotFoundError as missing:
    raise ModuleNotFoundError(
        "RagaliqGuardMiddleware needs LangChain's agents: "
        "install `langchain-ragaliq[agents]`, or `langchain` 1.0 or later"
    ) from missing


# LangChain's class has two type parameters in 1.0, and since a third with a default.
class RagaliqGuardMiddleware(AgentMiddleware[Any, Any]):
    """Checks an agent's final answer against what its tools said in this turn.

        agent = create_agent(model, tools, middleware=[RagaliqGuardMiddleware(judge="claude")])

    An answer that may not go out returns to the model with feedback, at most `max_retries` times;
    then it is replaced, annotated in its `response_metadata["ragaliq"]`, or raises, according to
    the guard's `action`. Rejected attempts and the feedback leave the conversation when the turn
    ends. Messages that are streamed while the model speaks (`stream_mode="messages"`) are not held
    back.

    Args:
        guard: Decides; built from `options` when not given.
        max_retries: How often in a turn the model answers again.
        pipeline: The application's name for the agent.
        **options: Arguments of `ragaliq.Guard`; `judge` may also be a chat model of LangChain's.

    Raises:
        ragaliq.ConfigurationError: A setting is wrong.
    """

    @takes_only(Guard, Monitor)
    def __init__(
        self,
        guard: Guard | None = None,
        *,
        max_retries: int = 0,
        pipeline: str = "",
        **options: Any,
    ) -> None:
        if guard is not None and options:
            raise ConfigurationError(f"give a guard or its options, not both: {sorted(options)}")
        if max_retries < 0:
            raise ConfigurationError(f"max_retries must be 0 or more, got {max_retries}")
        super().__init__()
        self._max_retries = max_retries
        self.guard = guard if guard is not None else Guard(**with_judge(options))
        self.tools = ()
        self._pipeline = pipeline

    @hook_config(can_jump_to=["model"])
    def after_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """Check the answer, if the model has given its final one.

        Raises:
            ragaliq.GuardRejected: It must not go out, and the guard is set to raise.
        """
        case = self._case(state)
        if case is None:
            return None
        return self._settle(state, self.guard.check(case, **self._origin()))

    @hook_config(can_jump_to=["model"])
    async def aafter_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """`after_model` for asynchronous code; the event loop is never blocked."""
        case = self._case(state)
        if case is None:
            return None
        return self._settle(state, await self.guard.acheck(case, **self._origin()))

    def _case(self, state: Mapping[str, Any]) -> RunLog | None:
        if self.guard.is_off or not _is_final(state):
            return None
        answer = answer_of(_answer_state(state))
        if not answer:
            return None
        question = READER.question({"messages": state["messages"]}) or Found("", "")
        # Not a case: building one reads metadata, whose errors are not the request's.
        log = RunLog(uuid4().hex, question=question, answer=Found(answer, ""))
        log.tool_returned("tools", READER.tool_results(state))
        log.replied("model", answer)  # a model that repeats a tool's result is supported by it
        return log

    def _origin(self) -> dict[str, Any]:
        config = CONFIG.get() or {}
        thread_id = config.get("configurable", {}).get("thread_id")
        return {
            "session_id": None if thread_id is None else str(thread_id),
            "pipeline": self._pipeline,
            "framework": "langchain",
        }

    def _settle(self, state: Mapping[str, Any], result: GuardResult) -> dict[str, Any] | None:
        turn = _this_turn(state["messages"])
        if not result.passes and sum(map(_is_feedback, turn)) < self._max_retries:
            feedback = HumanMessage(result.feedback, additional_kwargs={**FEEDBACK})
            return {"messages": [feedback], "jump_to": "model"}
        step = self.guard.step(result)
        messages: list[AnyMessage | RemoveMessage] = [*_leftovers(turn)]
        update: dict[str, Any] = {}
        last, answer = state["messages"][-1], answer_of(_answer_state(state)) or ""
        if step == "annotate":
            messages.append(annotated(last, "", result.summary))
        elif step == "fallback":
            other = self.guard.fallback(result)
            if state.get("structured_response") is not None:
                update["structured_response"] = other
            else:
                messages.append(last.model_copy(update={"content": other}))
            answer = answer_of(other) or ""
        if messages:
            update["messages"] = messages
        _note_guarded(answer)
        return update or None


def _is_final(state: Mapping[str, Any]) -> bool:
    messages = state["messages"]
    last = messages[-1] if messages else None
    if isinstance(last, ToolMessage):
        # How a model gives a structured answer; other tools are called later.
        return state.get("structured_response") is not None
    return isinstance(last, AIMessage) and not last.tool_calls


def _answer_state(state: Mapping[str, Any]) -> dict[str, Any]:
    """Part of an agent's state with its answer; the rest is the application's."""
    return {key: state[key] for key in ("messages", "structured_response") if key in state}


def _leftovers(turn: Sequence[AnyMessage]) -> list[AnyMessage | RemoveMessage]:
    """Messages that remove this turn's rejected attempts and feedback from a conversation."""
    left: list[AnyMessage] = []
    for position, message in enumerate(turn):
        if not _is_feedback(message):
            continue
        left.append(message)
        before = turn[position - 1]
        left.append(before)
        if isinstance(before, ToolMessage):
            left.append(turn[position - 2])  # the call that gave a structured answer
    return [RemoveMessage(id=message.id) for message in left if message.id is not None]


def _is_feedback(message: AnyMessage) -> bool:
    return (
        isinstance(message, HumanMessage) and FEEDBACK.items() <= message.additional_kwargs.items()
    )


def _this_turn(messages: Sequence[AnyMessage]) -> Sequence[AnyMessage]:
    """Messages after the user's last one: a state holds every turn so far."""
    for position in range(len(messages) - 1, -1, -1):
        found = READER.message(messages[position])
        if found is not None and found.role == "user":
            return messages[position + 1 :]
    return messages


def _note_guarded(answer: str) -> None:
    config = CONFIG.get() or {}
    callbacks = config.get("callbacks")
    handlers = getattr(callbacks, "handlers", ())
    note_guarded(handlers, getattr(callbacks, "parent_run_id", None), answer)
