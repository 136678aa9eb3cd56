"""Each convention's way to write down the same run: a model answers from what was found."""

import json

import pytest
from hand_written import QUESTION, TEXTS, only, reason, span, triple

from ragaliq.traces import SpanEvent

REPLY = "Refunds take five days. They come in cash."
PROMPT = f"Answer from this: {' '.join(TEXTS)}"
CHAT = [{"role": "system", "content": PROMPT}, {"role": "user", "content": QUESTION}]
DOCUMENTS = [{"document.content": text, "document.id": f"d{n}"} for n, text in enumerate(TEXTS)]
FOUND = [{"page_content": text, "metadata": {}, "id": f"d{n}"} for n, text in enumerate(TEXTS)]


def step(parent=None, *, at=(0, 100), events=(), scope="", **attributes):
    held = {
        name.replace("__", "."): value if isinstance(value, str) else json.dumps(value)
        for name, value in attributes.items()
    }
    return span(parent=parent, at=at, attributes=held, events=events, scope=scope)


def event(name, **attributes):
    return SpanEvent(name=name, attributes=attributes)


def vercel():
    root = step(
        ai__operationId="ai.generateText",
        ai__prompt={"system": "Be kind.", "prompt": QUESTION},
        ai__response__text=REPLY,
    )
    tool = step(root, at=(10, 20), ai__operationId="ai.toolCall", ai__toolCall__result=FOUND)
    output = {"type": "json", "value": FOUND}
    asked = [
        {"role": "user", "content": [{"type": "text", "text": QUESTION}]},
        {"role": "tool", "content": [{"type": "tool-result", "output": output}]},
    ]
    model = {"ai__prompt__messages": asked, "ai__response__text": REPLY}
    return [
        root,
        tool,
        step(root, at=(30, 40), ai__operationId="ai.generateText.doGenerate", **model),
    ]


def mlflow():
    root = step(
        mlflow__spanType="CHAIN",
        mlflow__spanInputs={"question": QUESTION},
        mlflow__spanOutputs=json.dumps(REPLY),
    )
    found = step(root, at=(10, 20), mlflow__spanType="RETRIEVER", mlflow__spanOutputs=FOUND)
    model = step(
        root,
        at=(30, 40),
        mlflow__spanType='"CHAT_MODEL"',
        mlflow__spanInputs={"messages": CHAT},
        mlflow__spanOutputs={"choices": [{"message": {"role": "assistant", "content": REPLY}}]},
    )
    return [root, found, model]


def langfuse():
    kind, given, said = (f"langfuse__observation__{n}" for n in ("type", "input", "output"))
    root = step(langfuse__trace__input=QUESTION, langfuse__trace__output=REPLY, **{kind: "span"})
    found = step(root, at=(10, 20), **{kind: "retriever", given: QUESTION, said: FOUND})
    reply = {"role": "assistant", "content": REPLY}
    return [root, found, step(root, at=(30, 40), **{kind: "generation", given: CHAT, said: reply})]


def openllmetry_with_numbered_prompts():
    root = step(traceloop__span__kind="workflow", traceloop__entity__input={"args": [QUESTION]})
    hits = [
        event(
            "db.query.result", **{"db.query.result.id": f"d{n}", "db.query.result.document": text}
        )
        for n, text in enumerate(TEXTS)
    ]
    store = span(parent=root, at=(10, 20), attributes={"db.system": "chroma"}, events=tuple(hits))
    model = step(
        root,
        at=(30, 40),
        llm__request__type="chat",
        gen_ai__prompt__0__role="system",
        gen_ai__prompt__0__content=PROMPT,
        gen_ai__prompt__1__role="user",
        gen_ai__prompt__1__content=QUESTION,
        gen_ai__completion__0__role="assistant",
        gen_ai__completion__0__content=REPLY,
    )
    return [root, store, model]


def openllmetry_for_llama_index():
    """Retrievers are tasks by their names, whose nodes are JSON inside JSON."""
    scope = "opentelemetry.instrumentation.llamaindex"
    nodes = [
        json.dumps({"node": {"id_": f"d{n}", "text": text}, "score": 0.5})
        for n, text in enumerate(TEXTS)
    ]
    root = step(
        traceloop__span__kind="workflow",
        traceloop__entity__input={"str_or_query_bundle": QUESTION},
        traceloop__entity__output={"response": REPLY, "metadata": {"d0": {}}},
        scope=scope,
    )
    found = span(
        name="VectorIndexRetriever.task",
        parent=root,
        at=(10, 20),
        attributes={"traceloop.span.kind": "task", "traceloop.entity.output": json.dumps(nodes)},
        scope=scope,
    )
    embedding = step(found, gen_ai__operation__name="embeddings", traceloop__span__kind="task")
    return [root, found, embedding, chat(root, PROMPT, QUESTION, REPLY)]


def autogen():
    root = step(openinference__span__kind="AGENT")
    said = {"name": "search", "content": "\n".join(TEXTS), "is_error": False}
    prompt = {
        "llm__input_messages__0__message__role": "user",
        "llm__input_messages__0__message__content": QUESTION,
        "llm__input_messages__1__message__role": "function",
        "llm__input_messages__1__function__0": said,
        "llm__output_messages__0__message__role": "assistant",
        "llm__output_messages__0__message__content": REPLY,
    }
    found = step(
        root, at=(10, 20), openinference__span__kind="RETRIEVER", retrieval__documents=DOCUMENTS
    )
    return [root, found, step(root, at=(30, 40), openinference__span__kind="LLM", **prompt)]


def langfuse_s_decorators():
    kind, given, said = (f"langfuse__observation__{n}" for n in ("type", "input", "output"))
    root = step(**{kind: "chain", given: {"args": [QUESTION], "kwargs": {}}, said: REPLY})
    asked = {"args": [CHAT], "kwargs": {}}
    return [
        root,
        step(root, at=(10, 20), **{kind: "retriever", said: FOUND}),
        step(root, at=(30, 40), **{kind: "generation", given: asked, said: REPLY}),
    ]


def spring_ai():
    """A chat client with its advisor, which searches; the model's prompt is in an event."""
    root = step(
        spring__ai__kind="chat_client",
        gen_ai__operation__name="framework",
        spring__ai__chat__client__conversation__id="c1",
    )
    advisor = step(root, at=(5, 90), spring__ai__kind="advisor")
    search = step(
        advisor,
        at=(10, 20),
        spring__ai__kind="vector_store",
        db__operation__name="query",
        db__vector__query__content=QUESTION,
        db__vector__query__response__documents=TEXTS,
    )
    asked = event("gen_ai.content.prompt", **{"gen_ai.prompt": f"{PROMPT}\n{QUESTION}"})
    said = event("gen_ai.content.completion", **{"gen_ai.completion": REPLY})
    model = step(advisor, at=(30, 40), gen_ai__operation__name="chat", events=(asked, said))
    return [root, advisor, search, model]


def quarkus_langchain4j():
    """The AI service's own span says nothing; a model's texts are two attributes."""
    request = span(name="langchain4j.aiservices.Shop.answer")
    found = step(
        request,
        at=(10, 20),
        gen_ai__operation__name="retrieval",
        gen_ai__retrieval__documents=FOUND,
    )
    texts = {"gen_ai__content__prompt": f"{PROMPT}\n{QUESTION}", "gen_ai__completion": REPLY}
    return [request, found, step(request, at=(30, 40), gen_ai__operation__name="chat", **texts)]


def langchain4j():
    """An AI service's own spans hold phrases of the instrumentation's."""
    kind, prompt, said = "openinference__span__kind", "llm__input_messages__", "output__value"
    root = step(**{kind: "AGENT", "input__value": "Execution Started", said: "Execution Completed"})
    tool = step(root, at=(10, 20), **{kind: "TOOL", said: "\n".join(TEXTS)})
    asked = {
        f"{prompt}0__message__role": "user",
        f"{prompt}0__message__content": QUESTION,
        f"{prompt}1__message__role": "tool",
        f"{prompt}1__message__content": "\n".join(TEXTS),
        "llm__output_messages__0__message__role": "assistant",
        "llm__output_messages__0__message__content": REPLY,
    }
    model = step(root, at=(30, 40), **{kind: "LLM"}, **asked)
    service = {kind: "LLM", "input__value": "LLM REQUEST", said: f"ChatResponse {{ {REPLY} }}"}
    return [root, tool, model, step(root, at=(41, 42), **service)]


def strands():
    """One event a message; contents are Amazon's blocks, as JSON."""
    asked = event("gen_ai.user.message", content=json.dumps([{"text": QUESTION}]))
    result = {"toolResult": {"content": [{"text": text} for text in TEXTS]}}
    told = event("gen_ai.tool.message", content=json.dumps([result]))
    said = event("gen_ai.choice", message=json.dumps([{"text": REPLY}]))
    root = step(gen_ai__operation__name="invoke_agent", events=(asked, said))
    return [
        root,
        step(root, at=(30, 40), gen_ai__operation__name="chat", events=(asked, told, said)),
    ]


def google_s_contents():
    root = step(openinference__span__kind="AGENT", output__value=REPLY)
    response = {"functionResponse": {"name": "search", "response": {"results": FOUND}}}
    contents = [
        {"role": "user", "parts": [{"text": QUESTION}]},
        {"role": "model", "parts": [{"functionCall": {"name": "search", "args": {"q": "r"}}}]},
        {"role": "user", "parts": [response]},
    ]
    model = {"input__value": {"contents": contents}, "input__mime_type": "application/json"}
    return [
        root,
        step(root, at=(30, 40), openinference__span__kind="LLM", output__value=REPLY, **model),
    ]


def documents_given_to_an_inner_step():
    """DSPy's tutorial: plain code searches, and a module is given what it found."""
    root = step(
        openinference__span__kind="CHAIN",
        input__value={"question": QUESTION},
        output__value={"response": REPLY},
        input__mime_type="application/json",
        output__mime_type="application/json",
    )
    inner = step(
        root,
        at=(20, 50),
        openinference__span__kind="CHAIN",
        input__value={"context": TEXTS, "question": QUESTION},
        input__mime_type="application/json",
    )
    return [root, inner, chat(inner, PROMPT, QUESTION, REPLY)]


def chat(parent, system, asked, reply, *, at=(30, 40)):
    messages = [{"role": "system", "content": system}, {"role": "user", "content": asked}]
    said = [{"role": "assistant", "content": reply}]
    held = {"gen_ai__input__messages": messages, "gen_ai__output__messages": said}
    return step(parent, at=at, gen_ai__operation__name="chat", **held)


def search(parent, *, query=QUESTION, at=(10, 20)):
    held = {"gen_ai__retrieval__query__text": query, "gen_ai__retrieval__documents": FOUND}
    return step(parent, at=at, gen_ai__operation__name="retrieval", **held)


def rewriting_before_and_suggestions_after():
    request = span(name="POST /ask")
    follow_ups = f"Suggest questions after: {REPLY}"
    return [
        request,
        chat(request, "Rewrite the question.", QUESTION, "refund duration", at=(1, 5)),
        search(request, query="refund duration"),
        chat(request, PROMPT, QUESTION, REPLY),
        chat(request, "Be brief.", follow_ups, "How do I return a bicycle?", at=(50, 60)),
    ]


def an_operation_that_the_convention_does_not_have_yet():
    root = step(gen_ai__operation__name="plan_and_solve")
    return [root, search(root), chat(root, PROMPT, QUESTION, REPLY)]


WAYS = [
    vercel,
    mlflow,
    langfuse,
    openllmetry_with_numbered_prompts,
    openllmetry_for_llama_index,
    autogen,
    langfuse_s_decorators,
    strands,
    google_s_contents,
    documents_given_to_an_inner_step,
    rewriting_before_and_suggestions_after,
    an_operation_that_the_convention_does_not_have_yet,
]


@pytest.mark.parametrize("way", WAYS)
def test_the_same_case(way):
    found = only(way())
    assert triple(found) == (QUESTION, TEXTS, REPLY)
    assert found.log.sources.context == "prompt"


def test_spring_ai_s_conversation():
    assert only(spring_ai()).session_id == "c1"


def test_phrases_that_stand_for_what_was_said_are_no_question_and_no_answer():
    found = only(langchain4j())
    assert triple(found) == (QUESTION, ["\n".join(TEXTS)], REPLY)


@pytest.mark.parametrize("way", [spring_ai, quarkus_langchain4j])
def test_java_s_frameworks_whose_prompts_are_one_text(way):
    found = only(way())
    assert triple(found)[1:] == (TEXTS, REPLY)
    assert QUESTION in triple(found)[0]


def test_a_search_of_a_vector_store_alone_is_not_a_run():
    hit = event("db.query.result", **{"db.query.result.document": TEXTS[0]})
    assert reason([span(attributes={"db.system": "chroma"}, events=(hit,))]) == "not_rag"
