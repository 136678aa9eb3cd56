"""Each convention's way to write down the same run: a model answers from what was found."""

import json

import pytest
from hand_written import QUESTION, ROOT, TEXTS, genai, only, reason, request, span, triple

from ragaliq.traces import SpanEvent

REPLY = "Refunds take five days. They come in cash."
PROMPT = f"Answer from this: {' '.join(TEXTS)}"
CHAT = [{"role": "system", "content": PROMPT}, {"role": "user", "content": QUESTION}]
DOCUMENTS = [{"document.content": text, "document.id": f"d{n}"} for n, text in enumerate(TEXTS)]
FOUND = [{"page_content": text, "metadata": {}, "id": f"d{n}"} for n, text in enumerate(TEXTS)]


FIRST, LAST = (10, 20), (30, 40)


def step(at=FIRST, *, parent=ROOT, **more):
    """A step of the run; keyword arguments with `__` are attributes."""
    named = {name: more.pop(name) for name in list(more) if "__" in name}
    held = {
        name.replace("__", ".").rstrip("."): value if isinstance(value, str) else json.dumps(value)
        for name, value in named.items()
    }
    return span(parent=parent, at=at, attributes=held, **more)


def run(**more):
    return step((0, 100), parent=None, id=ROOT, **more)


def event(name, **attributes):
    return SpanEvent(name=name, attributes=attributes)


def vercel():
    output = {"type": "json", "value": FOUND}
    asked = [
        {"role": "user", "content": [{"type": "text", "text": QUESTION}]},
        {"role": "tool", "content": [{"type": "tool-result", "output": output}]},
    ]
    model = {"ai__prompt__messages": asked, "ai__response__text": REPLY}
    return [
        run(
            ai__operationId="ai.generateText",
            ai__prompt={"system": "Be kind.", "prompt": QUESTION},
            ai__response__text=REPLY,
        ),
        step(ai__operationId="ai.toolCall", ai__toolCall__result=FOUND),
        step(LAST, ai__operationId="ai.generateText.doGenerate", **model),
    ]


def mlflow():
    kind, given, said = (f"mlflow__span{n}" for n in ("Type", "Inputs", "Outputs"))
    reply = {"choices": [{"message": {"role": "assistant", "content": REPLY}}]}
    return [
        run(**{kind: "CHAIN", given: {"question": QUESTION}, said: json.dumps(REPLY)}),
        step(**{kind: "RETRIEVER", said: FOUND}),
        step(LAST, **{kind: '"CHAT_MODEL"', given: {"messages": CHAT}, said: reply}),
    ]


KIND, GIVEN, SAID = (f"langfuse__observation__{n}" for n in ("type", "input", "output"))


def langfuse():
    reply = {"role": "assistant", "content": REPLY}
    return [
        run(langfuse__trace__input=QUESTION, langfuse__trace__output=REPLY, **{KIND: "span"}),
        step(**{KIND: "retriever", GIVEN: QUESTION, SAID: FOUND}),
        step(LAST, **{KIND: "generation", GIVEN: CHAT, SAID: reply}),
    ]


def langfuse_s_decorators():
    asked = {"args": [CHAT], "kwargs": {}}
    return [
        run(**{KIND: "chain", GIVEN: {"args": [QUESTION], "kwargs": {}}, SAID: REPLY}),
        step(**{KIND: "retriever", SAID: FOUND}),
        step(LAST, **{KIND: "generation", GIVEN: asked, SAID: REPLY}),
    ]


def openllmetry_with_numbered_prompts():
    hits = [
        event(
            "db.query.result", **{"db.query.result.id": f"d{n}", "db.query.result.document": text}
        )
        for n, text in enumerate(TEXTS)
    ]
    return [
        run(traceloop__span__kind="workflow", traceloop__entity__input={"args": [QUESTION]}),
        step(db__system="chroma", events=tuple(hits)),
        step(
            LAST,
            llm__request__type="chat",
            gen_ai__prompt__0__role="system",
            gen_ai__prompt__0__content=PROMPT,
            gen_ai__prompt__1__role="user",
            gen_ai__prompt__1__content=QUESTION,
            gen_ai__completion__0__role="assistant",
            gen_ai__completion__0__content=REPLY,
        ),
    ]


def openllmetry_for_llama_index():
    """Retrievers are tasks by their names, whose nodes are JSON inside JSON."""
    scope = "opentelemetry.instrumentation.llamaindex"
    nodes = [
        json.dumps({"node": {"id_": f"d{n}", "text": text}, "score": 0.5})
        for n, text in enumerate(TEXTS)
    ]
    found = step(
        name="VectorIndexRetriever.task",
        scope=scope,
        traceloop__span__kind="task",
        traceloop__entity__output=nodes,
    )
    return [
        run(
            traceloop__span__kind="workflow",
            traceloop__entity__input={"str_or_query_bundle": QUESTION},
            traceloop__entity__output={"response": REPLY, "metadata": {"d0": {}}},
            scope=scope,
        ),
        found,
        step(parent=found, gen_ai__operation__name="embeddings", traceloop__span__kind="task"),
        chat(),
    ]


OPENINFERENCE = "openinference__span__kind"
PROMPTED, REPLIED = "llm__input_messages__", "llm__output_messages__0__message__"
ASKED = {f"{PROMPTED}0__message__role": "user", f"{PROMPTED}0__message__content": QUESTION}
ANSWERED = {f"{REPLIED}role": "assistant", f"{REPLIED}content": REPLY}


def autogen():
    said = {"name": "search", "content": "\n".join(TEXTS), "is_error": False}
    told = {f"{PROMPTED}1__message__role": "function", f"{PROMPTED}1__function__0": said}
    return [
        run(**{OPENINFERENCE: "AGENT"}),
        step(**{OPENINFERENCE: "RETRIEVER"}, retrieval__documents=DOCUMENTS),
        step(LAST, **{OPENINFERENCE: "LLM"}, **ASKED, **told, **ANSWERED),
    ]


def langchain4j():
    """An AI service's own spans hold phrases of the instrumentation's."""
    given, said = "input__value", "output__value"
    texts = "\n".join(TEXTS)
    told = {f"{PROMPTED}1__message__role": "tool", f"{PROMPTED}1__message__content": texts}
    service = {given: "LLM REQUEST", said: f"ChatResponse {{ {REPLY} }}"}
    return [
        run(**{OPENINFERENCE: "AGENT", given: "Execution Started", said: "Execution Completed"}),
        step(**{OPENINFERENCE: "TOOL", said: texts}),
        step(LAST, **{OPENINFERENCE: "LLM"}, **ASKED, **told, **ANSWERED),
        step((41, 42), **{OPENINFERENCE: "LLM"}, **service),
    ]


def google_s_contents():
    response = {"functionResponse": {"name": "search", "response": {"results": FOUND}}}
    contents = [
        {"role": "user", "parts": [{"text": QUESTION}]},
        {"role": "model", "parts": [{"functionCall": {"name": "search", "args": {"q": "r"}}}]},
        {"role": "user", "parts": [response]},
    ]
    model = {"input__value": {"contents": contents}, "input__mime_type": "application/json"}
    return [
        run(**{OPENINFERENCE: "AGENT"}, output__value=REPLY),
        step(LAST, **{OPENINFERENCE: "LLM"}, output__value=REPLY, **model),
    ]


def documents_given_to_an_inner_step():
    """DSPy's tutorial: plain code searches, and a module is given what it found."""
    kind = {OPENINFERENCE: "CHAIN"}
    json_in, json_out = ({f"{side}__mime_type": "application/json"} for side in ("input", "output"))
    given = {"context": TEXTS, "question": QUESTION}
    inner = step((20, 50), **kind, input__value=given, **json_in)
    asked, said = {"question": QUESTION}, {"response": REPLY}
    return [
        run(**kind, input__value=asked, output__value=said, **json_in, **json_out),
        inner,
        chat(parent=inner),
    ]


def spring_ai():
    """A chat client with its advisor, which searches; the model's prompt is in an event."""
    asked = event("gen_ai.content.prompt", **{"gen_ai.prompt": f"{PROMPT}\n{QUESTION}"})
    said = event("gen_ai.content.completion", **{"gen_ai.completion": REPLY})
    advisor = step((5, 90), spring__ai__kind="advisor")
    return [
        run(
            spring__ai__kind="chat_client",
            gen_ai__operation__name="framework",
            spring__ai__chat__client__conversation__id="c1",
        ),
        advisor,
        step(
            parent=advisor,
            spring__ai__kind="vector_store",
            db__operation__name="query",
            db__vector__query__content=QUESTION,
            db__vector__query__response__documents=TEXTS,
        ),
        step(LAST, parent=advisor, gen_ai__operation__name="chat", events=(asked, said)),
    ]


def spring_ai_s_tools():
    return [
        run(spring__ai__kind="chat_client", gen_ai__operation__name="framework"),
        step(spring__ai__kind="tool_call", spring__ai__tool__call__result=FOUND),
        chat(),
    ]


def quarkus_langchain4j():
    """The AI service's own span says nothing; a model's texts are two attributes."""
    texts = {"gen_ai__content__prompt": f"{PROMPT}\n{QUESTION}", "gen_ai__completion": REPLY}
    return [request(), search(), step(LAST, gen_ai__operation__name="chat", **texts)]


def strands():
    """One event a message; contents are Amazon's blocks, as JSON."""
    asked = event("gen_ai.user.message", content=json.dumps([{"text": QUESTION}]))
    result = {"toolResult": {"content": [{"text": text} for text in TEXTS]}}
    told = event("gen_ai.tool.message", content=json.dumps([result]))
    said = event("gen_ai.choice", message=json.dumps([{"text": REPLY}]))
    return [
        run(gen_ai__operation__name="invoke_agent", events=(asked, said)),
        step(LAST, gen_ai__operation__name="chat", events=(asked, told, said)),
    ]


def chat(system=PROMPT, asked=QUESTION, reply=REPLY, **more):
    messages = [{"role": "system", "content": system}, {"role": "user", "content": asked}]
    said = [{"role": "assistant", "content": reply}]
    return genai("chat", input__messages=messages, output__messages=said, **{"at": LAST} | more)


def search(query=QUESTION):
    found = {"retrieval__query__text": query, "retrieval__documents": FOUND}
    return genai("retrieval", at=FIRST, **found)


def rewriting_before_and_suggestions_and_a_grade_after():
    follow_ups = f"Suggest questions after: {REPLY}"
    return [
        request(),
        chat("Rewrite the question.", QUESTION, "refund duration", at=(1, 5)),
        search("refund duration"),
        chat(),
        chat("Be brief.", follow_ups, "How do I return a bicycle?", at=(50, 60)),
        chat(f"Documents: {' '.join(TEXTS)}", f"Is it grounded? {REPLY}", "yes", at=(70, 80)),
    ]


def langsmith():
    kind, given, said = "langsmith__span__kind", "gen_ai__prompt", "gen_ai__completion"
    kwargs = [
        {"lc": 1, "type": "constructor", "id": ["langchain", name], "kwargs": {"content": text}}
        for name, text in (("SystemMessage", PROMPT), ("HumanMessage", QUESTION))
    ]
    reply = {"generations": [[{"text": REPLY, "message": {"kwargs": {"content": REPLY}}}]]}
    return [
        run(**{kind: "chain", given: {"input": QUESTION}, said: {"output": REPLY}}),
        step(**{kind: "retriever", given: {"query": QUESTION}, said: {"documents": FOUND}}),
        step(LAST, **{kind: "llm", given: {"messages": [kwargs]}, said: reply}),
    ]


def genkit():
    kind, given, said = "genkit__metadata__subtype", "genkit__input", "genkit__output"
    messages = [
        {"role": "system", "content": [{"text": PROMPT}]},
        {"role": "user", "content": [{"text": QUESTION}]},
    ]
    found = {"documents": [{"content": [{"text": text}]} for text in TEXTS]}
    reply = {"message": {"role": "model", "content": [{"text": REPLY}]}}
    steps = [
        run(**{kind: "flow", given: json.dumps(QUESTION), said: json.dumps(REPLY)}),
        step(**{kind: "retriever", said: found}),
        step(LAST, **{kind: "model", given: {"messages": messages}, said: reply}),
    ]
    return [as_genkit(each) for each in steps]


def as_genkit(each):
    held = {name.replace("genkit.", "genkit:"): value for name, value in each.attributes.items()}
    held = {name.replace("metadata.", "metadata:"): value for name, value in held.items()}
    return each._replace(attributes={"genkit:type": "action", **held})


def langtrace():
    hits = (
        event("db.chroma.query.result", id=f"d{n}", document=text) for n, text in enumerate(TEXTS)
    )
    asked = event("gen_ai.content.prompt", **{"gen_ai.prompt": json.dumps(CHAT)})
    said = event("gen_ai.content.completion", **{"gen_ai.completion": json.dumps(SAID_IN_A_LIST)})
    kind = "langtrace__service__type"
    return [
        request(),
        step(**{kind: "vectordb"}, db__operation="query", events=tuple(hits)),
        step(LAST, **{kind: "llm"}, gen_ai__operation__name="chat", events=(asked, said)),
    ]


SAID_IN_A_LIST = [{"role": "assistant", "content": REPLY}]


def older_pydantic_ai():
    """Messages are events in one attribute, as JSON."""
    events = [{"event.name": f"gen_ai.{m['role']}.message", **m} for m in CHAT]
    events.append({"event.name": "gen_ai.choice", "message": SAID_IN_A_LIST[0]})
    return [request(), search(), step(LAST, gen_ai__operation__name="chat", events__=events)]


def older_pydantic_ai_s_agent():
    """Its agent keeps all messages as events, its tools have attributes of their own."""
    scope = "pydantic-ai"
    asked = {"event.name": "gen_ai.user.message", "role": "user", "content": QUESTION}
    said = {"event.name": "gen_ai.assistant.message", "role": "assistant", "content": REPLY}
    agent = run(scope=scope, all_messages_events__=[asked, said], final_result__=REPLY)
    tool = step(scope=scope, tool_arguments__="{}", tool_response__=json.dumps(FOUND))
    return [agent, tool, chat(PROMPT)]


def prompt_variables():
    """The search shows ids only; what the template was filled with is on the model's span."""
    filled = {"prompt__variable__context": "\n".join(TEXTS)}
    return [request(), search_by_id(), chat(**filled)]


def search_by_id():
    hits = [{"id": f"d{n}"} for n in range(len(TEXTS))]
    return genai("retrieval", at=FIRST, retrieval__documents=hits, retrieval__query__text=QUESTION)


def a_search_before_an_agent():
    agent = genai("invoke_agent", parent=ROOT, at=(25, 50), output__messages=SAID_IN_A_LIST)
    return [request(), search(), agent, chat(parent=agent)]


def a_search_before_an_agent_that_is_asked_in_one_message():
    asked = f"Context:\n{' '.join(TEXTS)}\n\nQuestion: {QUESTION}\nAnswer:"
    agent = genai("invoke_agent", parent=ROOT, at=(25, 50), output__messages=SAID_IN_A_LIST)
    return [request(), search(""), agent, chat("Be kind.", asked, parent=agent)]


def a_question_that_a_model_rewrote():
    rewritten = "What is the payout time for refunds?"
    return [
        request(),
        chat("Rewrite the question.", QUESTION, rewritten, at=(1, 5)),
        search(rewritten),
        chat(asked=rewritten),
    ]


def an_operation_that_the_convention_does_not_have_yet():
    return [run(gen_ai__operation__name="plan_and_solve"), search(), chat()]


WAYS = [
    vercel,
    mlflow,
    langfuse,
    openllmetry_with_numbered_prompts,
    openllmetry_for_llama_index,
    autogen,
    langfuse_s_decorators,
    spring_ai_s_tools,
    strands,
    google_s_contents,
    documents_given_to_an_inner_step,
    rewriting_before_and_suggestions_and_a_grade_after,
    langsmith,
    genkit,
    langtrace,
    older_pydantic_ai,
    older_pydantic_ai_s_agent,
    a_search_before_an_agent,
    a_search_before_an_agent_that_is_asked_in_one_message,
    a_question_that_a_model_rewrote,
    an_operation_that_the_convention_does_not_have_yet,
]


@pytest.mark.parametrize("way", WAYS)
def test_the_same_case(way):
    found = only(way())
    assert triple(found) == (QUESTION, TEXTS, REPLY)
    assert found.log.sources.context == "prompt"


def test_what_a_prompt_was_filled_with_is_context_where_the_search_shows_no_texts():
    assert triple(only(prompt_variables())) == (QUESTION, ["\n".join(TEXTS)], REPLY)


def test_a_search_without_texts_hides_its_content():
    assert reason([request(), search_by_id(), chat("Be kind.")]) == "content_hidden"
    openlit = {"db.system.name": "chroma", "gen_ai.operation.name": "vectordb"}
    found = span(parent=ROOT, at=FIRST, attributes={**openlit, "db.operation.name": "GET"})
    assert reason([request(), found, chat("Be kind.")]) == "content_hidden"


def test_what_a_store_is_given_is_no_search():
    added = {"db.system": "chroma", "db.operation": "add"}
    assert reason([request(), span(parent=ROOT, at=FIRST, attributes=added), chat()]) == "not_rag"
    uploaded = {"name": "qdrant.upload_points", "attributes": {"db.system": "Qdrant"}}
    assert reason([request(), span(parent=ROOT, at=FIRST, **uploaded), chat()]) == "not_rag"


def test_a_store_is_known_in_any_spelling():
    found = span(parent=ROOT, at=FIRST, name="pinecone.query", attributes={"db.system": "Pinecone"})
    assert reason([request(), found, chat()]) == "content_hidden"


def test_what_begins_after_a_span_without_output_has_ended_is_part_of_its_run():
    workflow = span(id=ROOT, attributes={"traceloop.span.kind": "workflow"}, at=(0, 25))
    assert triple(only([workflow, search(), chat()])) == (QUESTION, TEXTS, REPLY)


def test_a_tool_that_the_sdk_called_inside_a_model_s_call_was_shown_to_the_model():
    called = chat("Be kind.")
    tool = genai("execute_tool", parent=called, at=(31, 35), tool__call__result=TEXTS[0])
    assert triple(only([request(), called, tool])) == (QUESTION, TEXTS[:1], REPLY)


def then(said):
    """A model that is shown question, answer and documents, and says something."""
    asked = f"Question: {QUESTION}\nAnswer: {REPLY}"
    return chat(f"Is it right? {' '.join(TEXTS)}", asked, said, at=(50, 60))


def test_a_check_says_nothing_of_the_documents_nor_of_the_answer_and_is_none():
    spans = [request(), search(), chat(), then("It is safe and polite.")]
    assert triple(only(spans)) == (QUESTION, TEXTS, REPLY)


def test_a_revision_is_not_told_from_a_check_that_quotes_unless_the_run_shows_its_answer():
    quoted = then(f"It does say that {TEXTS[0]}")
    assert reason([request(), search(), chat(), quoted]) == "ambiguous"
    answered = run(gen_ai__operation__name="plan", gen_ai__output__messages=SAID_IN_A_LIST)
    assert triple(only([answered, search(), chat(), quoted])) == (QUESTION, TEXTS, REPLY)


def test_a_reply_that_rewords_the_answer_is_the_answer():
    better = f"Hello! {REPLY}"
    polished = chat("Make it kind.", REPLY, better, at=(50, 60))
    assert triple(only([request(), search(), chat(), polished])) == (QUESTION, TEXTS, better)


def test_what_a_partial_prompt_does_not_show_may_have_been_shown():
    asked = [{"role": "user", "content": QUESTION}, {"role": "memory", "items": ["..."]}]
    model = genai("chat", at=LAST, input__messages=asked, output__messages=SAID_IN_A_LIST)
    found = only([request(), search(), model])
    assert triple(found) == (QUESTION, TEXTS, REPLY)
    assert found.log.sources.context == "retriever"


def test_spring_ai_s_conversation():
    assert only(spring_ai()).run.session_id == "c1"


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


def test_a_model_that_is_shown_nothing_of_what_was_found_is_no_part_of_a_run():
    greeting = chat("Be kind.", "Say good morning.", "Good morning!")
    greeting = greeting._replace(scope="opentelemetry.instrumentation.openai_v2")
    assert reason([request(), search(), greeting]) == "not_rag"


def test_all_of_what_a_tool_said_is_evidence_beside_the_texts_of_its_hits():
    hits = [{"title": "Refunds", "url": "https://shop.example/refunds", "content": TEXTS[0]}]
    asked = [
        {"role": "user", "content": QUESTION},
        {"role": "tool", "content": json.dumps(hits)},
    ]
    model = genai("chat", at=LAST, input__messages=asked, output__messages=SAID_IN_A_LIST)
    tool = genai("execute_tool", at=FIRST, tool__call__result=json.dumps(hits))
    found = only([run(gen_ai__operation__name="invoke_agent"), tool, model])
    assert triple(found) == (QUESTION, TEXTS[:1], REPLY)
    assert "https://shop.example/refunds" in found.log.found_context.prompt


def test_rules_for_one_product_are_named_in_the_sources_of_a_case():
    assert only(autogen()).log.sources.rules == ("autogen.results",)
    assert only(strands()).log.sources.rules == ()
