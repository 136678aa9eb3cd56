"""Applications after the titles of the framework's own cookbooks, in shapes of no other file."""

import asyncio
import json
import re
from collections import defaultdict

from harness import app
from llama_index.core import Document, SummaryIndex, TreeIndex, VectorStoreIndex
from llama_index.core.agent.workflow import FunctionAgent, ToolCallResult
from llama_index.core.base.llms.types import ChatMessage, ImageBlock, TextBlock
from llama_index.core.base.response.schema import Response
from llama_index.core.bridge.pydantic import BaseModel, ValidationError
from llama_index.core.chat_engine import CondensePlusContextChatEngine
from llama_index.core.extractors import QuestionsAnsweredExtractor, SummaryExtractor
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.memory import ChatMemoryBuffer, SimpleComposableMemory
from llama_index.core.objects import ObjectIndex
from llama_index.core.query_engine import CustomQueryEngine, RetrieverQueryEngine
from llama_index.core.retrievers import (
    BaseRetriever,
    RecursiveRetriever,
    SummaryIndexLLMRetriever,
    VectorIndexAutoRetriever,
)
from llama_index.core.schema import IndexNode, MetadataMode, NodeWithScore, TextNode
from llama_index.core.tools import FunctionTool, QueryEngineTool
from llama_index.core.vector_stores import MetadataInfo, VectorStoreInfo
from llama_index.core.workflow import Context, Event, StartEvent, StopEvent, Workflow, step
from llama_index_fakes import (
    Shelf,
    WordEmbedding,
    call,
    default_model,
    index,
    memory,
    scored,
    talker,
    when,
    writer,
)

GLACIER = "The glacier lost 3 metres of ice in the summer of 2022."
RIVER = "The river below the glacier carried twice its usual water in July 2022."
VALLEY = "The valley's hotel counted 9,000 guests in 2022."


@app(
    "partial answers of communities, rated and joined",
    question="What did the summer of 2022 change?",
    answer="The ice shrank by 3 metres and the river doubled.",
    prompt=[
        "Community 1: glacier and ice, minus 3 metres.",
        "Community 2: river, doubled in July.",
    ],
    absent=["Ice went back quite a lot that year.", "Water was plenty in the river."],
    status="not_rag",
)
def communities():
    # The summaries were written when the graph was built, by another process.
    summaries = [
        "Community 1: glacier and ice, minus 3 metres.",
        "Community 2: river, doubled in July.",
    ]

    class GraphRag(CustomQueryEngine):
        llm: object

        def custom_query(self, query_str):
            partial = [
                self.llm.complete(f"Summary: {each}\nAnswer from it only: {query_str}").text
                for each in summaries
            ]
            joined = "\n".join(partial)
            messages = [
                ChatMessage(role="system", content="Combine these answers into one."),
                ChatMessage(role="user", content=f"Intermediate answers:\n{joined}\n\n{query_str}"),
            ]
            return self.llm.chat(messages).message.content

    GraphRag(
        llm=talker(
            when(
                {
                    "Intermediate": "The ice shrank by 3 metres and the river doubled.",
                    "Community 1": "Ice went back quite a lot that year.",
                    "Community 2": "Water was plenty in the river.",
                }
            )
        )
    ).query("What did the summer of 2022 change?")


class Candidate(Event):
    answer: str


@app(
    "three strategies of which a judge picks the best answer",
    question="How much ice was lost?",
    answer="3 metres in the summer of 2022.",
    chunks=[GLACIER],
    absent=["Some ice was lost, it seems.", RIVER],
)
async def best_of_three():
    llm = talker("Some ice was lost, it seems.", "3 metres in the summer of 2022.", "2")

    class Strategies(Workflow):
        @step
        async def work(self, ev: StartEvent) -> StopEvent:
            answers = []
            for found in (Shelf(RIVER), Shelf(GLACIER)):
                nodes = await found.aretrieve(ev.query)
                said = await llm.acomplete(f"{nodes[0].text}\n{ev.query}")
                answers.append(said.text)
            listed = "\n".join(f"{n}: {a}" for n, a in enumerate(answers, 1))
            best = await llm.acomplete(
                f"Which answers {ev.query!r} best? Give its number.\n{listed}"
            )
            return StopEvent(result=answers[int(best.text) - 1])

    await Strategies(timeout=20).run(query="How much ice was lost?")


class Loss(BaseModel):
    """A loss of ice."""

    metres: int
    sentence: str


@app(
    "a reply that is validated and asked for again with the error",
    question="How much ice was lost?",
    answer=("The glacier lost 3 metres.",),
    chunks=[GLACIER],
    absent=["three metres roughly"],
)
async def validated():
    llm = talker(
        "three metres roughly",
        json.dumps({"metres": 3, "sentence": "The glacier lost 3 metres."}),
    )

    class Reflect(Workflow):
        @step
        async def work(self, ev: StartEvent) -> StopEvent:
            nodes = await Shelf(GLACIER).aretrieve(ev.query)
            prompt = f"{nodes[0].text}\n{ev.query}\nReply with JSON."
            while True:
                said = (await llm.acomplete(prompt)).text
                try:
                    return StopEvent(result=Loss.model_validate_json(said))
                except ValidationError as error:
                    prompt += f"\nYour reply {said!r} had errors: {error.title}"

    await Reflect(timeout=20).run(query="How much ice was lost?")


class Plan(BaseModel):
    """Queries to run."""

    queries: list[str]


@app(
    "a plan of a model whose steps are carried out",
    question="Did the ice feed the river?",
    answer="Probably: 3 metres of ice went while the river doubled.",
    chunks=[GLACIER, RIVER],
    absent=[
        "loss of ice in 2022",
        "water of the river in July",
        "Ice: minus three.",
        "Flow: times two.",
    ],
)
async def planned():
    found = {"loss of ice in 2022": Shelf(GLACIER), "water of the river in July": Shelf(RIVER)}
    llm = talker(
        when(
            {
                "Make a plan": call("Plan", queries=list(found)),
                "Results": "Probably: 3 metres of ice went while the river doubled.",
                GLACIER: "Ice: minus three.",
                RIVER: "Flow: times two.",
            }
        )
    )

    class Planner(Workflow):
        @step
        async def work(self, ev: StartEvent) -> StopEvent:
            message = ChatMessage(f"Make a plan for: {ev.query}")
            plan = (await llm.as_structured_llm(Plan).achat([message])).raw
            results = []
            for query in plan.queries:
                nodes = await found[query].aretrieve(query)
                said = await llm.acomplete(f"{nodes[0].text}\nQ: {query}")
                results.append(f"{query}: {said.text}")
            joined = "\n".join(results)
            said = await llm.acomplete(f"Results:\n{joined}\n\nNow answer: {ev.query}")
            return StopEvent(result=said.text)

    await Planner(timeout=20).run(query="Did the ice feed the river?")


@app(
    "nodes that a step splits into numbered sources",
    question="How much ice was lost?",
    answer="3 metres [1].",
    chunks=[GLACIER, RIVER],
)
async def citation_workflow():
    class Cite(Workflow):
        @step
        async def work(self, ev: StartEvent) -> StopEvent:
            nodes = await Shelf(GLACIER, RIVER).aretrieve(ev.query)
            numbered = [
                NodeWithScore(
                    node=TextNode(
                        text=f"Source {n}:\n{node.node.get_content(MetadataMode.NONE)}\n"
                    ),
                    score=node.score,
                )
                for n, node in enumerate(nodes, 1)
            ]
            from llama_index.core import get_response_synthesizer

            made = get_response_synthesizer(llm=talker("3 metres [1]."), response_mode="compact")
            return StopEvent(result=await made.asynthesize(ev.query, nodes=numbered))

    await Cite(timeout=20).run(query="How much ice was lost?")


@app(
    "an agent that gets its tools by search",
    question="How many guests came?",
    answer="9,000 guests came in 2022.",
    chunks=[VALLEY],
)
async def tool_search():
    def hotel_guests(year: int) -> str:
        """Number of guests of the hotel in a year."""
        return VALLEY

    def glacier_ice(year: int) -> str:
        """Ice of the glacier in a year."""
        return GLACIER

    with default_model():
        objects = ObjectIndex.from_objects(
            [FunctionTool.from_defaults(f) for f in (hotel_guests, glacier_ice)],
            index_cls=VectorStoreIndex,
        )
        llm = talker(call("hotel_guests", year=2022), "9,000 guests came in 2022.")
        agent = FunctionAgent(
            tool_retriever=objects.as_retriever(similarity_top_k=1),
            llm=llm,
            name="a",
            description="a",
        )
        await agent.run("How many guests came?", memory=memory())


@app(
    "a tool that asks the user for permission first",
    question="Please book a room for Friday.",
    answer="A room is booked for Friday, number 4411.",
    chunks=["Booked: Friday, booking number 4411."],
)
async def permission():
    from llama_index.core.workflow import HumanResponseEvent, InputRequiredEvent

    async def book(ctx: Context, day: str) -> str:
        """Book a room."""
        answer = await ctx.wait_for_event(
            HumanResponseEvent,
            waiter_id="book",
            waiter_event=InputRequiredEvent(prefix="Really?", user_name="guest"),
        )
        return f"Booked: {day}, booking number 4411." if answer.response == "yes" else "Not booked."

    llm = talker(call("book", day="Friday"), "A room is booked for Friday, number 4411.")
    handler = FunctionAgent(tools=[book], llm=llm).run(
        "Please book a room for Friday.", memory=memory()
    )
    async for event in handler.stream_events():
        if isinstance(event, InputRequiredEvent):
            handler.ctx.send_event(HumanResponseEvent(response="yes"))
    await handler


@app(
    "sentences that a model put before each chunk when it was indexed",
    question="When did the river carry more water?",
    answer="In July 2022, twice as much.",
    chunks=[RIVER],
    prompt=["This chunk is from the chapter on floods."],
)
def contextual_chunks():
    # What was written long ago is a document like others.
    text = f"This chunk is from the chapter on floods.\n{RIVER}"
    index(text).as_query_engine(llm=talker("In July 2022, twice as much.")).query(
        "When did the river carry more water?"
    )


@app(
    "metadata that models extracted when the documents were ingested",
    question="When did the river carry more water?",
    answer="It was in July 2022.",
    chunks=[RIVER],
    prompt=["A note on a river in flood"],
)
def extracted_metadata():
    llm = writer(when({"questions": "What happened in July?"}, "A note on a river in flood"))
    nodes = IngestionPipeline(
        transformations=[
            SummaryExtractor(llm=llm, summaries=["self"], show_progress=False, num_workers=1),
            QuestionsAnsweredExtractor(llm=llm, questions=1, show_progress=False, num_workers=1),
        ]
    ).run(documents=[TextNode(text=RIVER)], show_progress=False)
    VectorStoreIndex(nodes, embed_model=WordEmbedding()).as_query_engine(
        llm=talker("It was in July 2022.")
    ).query("When did the river carry more water?")


@app(
    "an index whose retriever is a model that picks numbers",
    question="How much ice was lost?",
    answer="3 metres of it.",
    chunks=[GLACIER],
    absent=[VALLEY, "Doc: 1, Relevance: 9"],
)
def chosen_by_model():
    made = SummaryIndex.from_documents([Document(text=GLACIER), Document(text=VALLEY)])
    retriever = SummaryIndexLLMRetriever(made, llm=writer("Doc: 1, Relevance: 9"))
    RetrieverQueryEngine.from_args(retriever, llm=writer("3 metres of it.")).query(
        "How much ice was lost?"
    )


@app(
    "a tree of summaries that is climbed down",
    question="How much ice was lost?",
    answer="Three metres in one summer.",
    chunks=[GLACIER],
    absent=["ANSWER: 1"],
)
def tree_index():
    llm = writer(
        when(
            {"Some choices": "ANSWER: 1", "Answer:": "Three metres in one summer."},
            "A summary of notes on the mountains.",
        )
    )
    made = TreeIndex.from_documents(
        [Document(text=GLACIER), Document(text=VALLEY)], llm=llm, num_children=2
    )
    made.as_query_engine(llm=llm, child_branch_factor=1).query("How much ice was lost?")


@app(
    "a filter of metadata that a model wrote",
    question="What about the hotel in 2022?",
    answer="It had 9,000 guests.",
    chunks=[VALLEY],
    prompt=["topic: tourism"],
    absent=["hotel guests", GLACIER],
)
def auto_retriever():
    nodes = [
        TextNode(text=VALLEY, metadata={"topic": "tourism"}),
        TextNode(text=GLACIER, metadata={"topic": "ice"}),
    ]
    made = VectorStoreIndex(nodes, embed_model=WordEmbedding())
    info = VectorStoreInfo(
        content_info="notes",
        metadata_info=[MetadataInfo(name="topic", type="str", description="tourism or ice")],
    )
    spec = {
        "query": "hotel guests",
        "filters": [{"key": "topic", "value": "tourism", "operator": "=="}],
        "top_k": 1,
    }
    retriever = VectorIndexAutoRetriever(
        made, vector_store_info=info, llm=writer(json.dumps(spec)), similarity_top_k=1
    )
    RetrieverQueryEngine.from_args(retriever, llm=talker("It had 9,000 guests.")).query(
        "What about the hotel in 2022?"
    )


@app(
    "short references to longer pages",
    question="How much ice was lost, and where did it go?",
    answer="3 metres went, into the river.",
    chunks=[f"{GLACIER} {RIVER}"],
)
def references():
    page = TextNode(text=f"{GLACIER} {RIVER}", id_="page-1")
    reference = IndexNode(text="ice loss", index_id="page-1")
    retriever = RecursiveRetriever(
        "refs", retriever_dict={"refs": Shelf(reference)}, node_dict={"page-1": page}
    )
    RetrieverQueryEngine.from_args(retriever, llm=writer("3 metres went, into the river.")).query(
        "How much ice was lost, and where did it go?"
    )


@app(
    "an image and a text in one message to an agent",
    question="Is this the hotel with 9,000 guests?",
    answer="Yes, that is the valley's hotel.",
    chunks=[VALLEY],
)
async def image():
    def guests(place: str) -> str:
        """Guests of a place."""
        return VALLEY

    message = ChatMessage(
        role="user",
        blocks=[
            ImageBlock(image=b"\x89PNG\r\n\x1a\n", image_mimetype="image/png"),
            TextBlock(text="Is this the hotel with 9,000 guests?"),
        ],
    )
    llm = talker(call("guests", place="valley"), "Yes, that is the valley's hotel.")
    await FunctionAgent(tools=[guests], llm=llm).run(message, memory=memory())


@app(
    "an answer out of a cache",
    question="How much ice was lost?",
    answer="3 metres in 2022, said the model.",
    chunks=[GLACIER],
)
def cached():
    kept = {}

    class Cached(CustomQueryEngine):
        """Asks once; the second user gets the kept answer, for which nothing is looked up."""

        inner: object

        def custom_query(self, query_str):
            if query_str not in kept:
                kept[query_str] = self.inner.query(query_str)
            return str(kept[query_str])

    inner = index(GLACIER).as_query_engine(llm=talker("3 metres in 2022, said the model."))
    engine = Cached(inner=inner)
    engine.query("How much ice was lost?")


@app(
    "a score of trust that the engine writes beside the answer",
    question="How much ice was lost?",
    answer="3 metres, as the note says.",
    chunks=[GLACIER],
    absent=["trustworthy: 0.93 because it is in the note"],
)
def trust():
    class Trusting(CustomQueryEngine):
        llm: object

        def custom_query(self, query_str):
            nodes = Shelf(GLACIER).retrieve(query_str)
            said = self.llm.complete(f"{nodes[0].text}\n{query_str}").text
            score = self.llm.complete(f"How sure are you of {said!r} for {query_str!r}?").text
            return Response(said, source_nodes=nodes, metadata={"trust": score})

    Trusting(
        llm=talker("3 metres, as the note says.", "trustworthy: 0.93 because it is in the note")
    ).query("How much ice was lost?")


@app(
    "a memory made of two memories",
    question="And the river?",
    answer="It carried twice its usual water, Lin.",
    chunks=[RIVER],
    prompt=["My name is Lin."],
    absent=["Pleased to meet you, dear Lin."],
)
def composed_memory():
    short = ChatMemoryBuffer.from_defaults(token_limit=5000)
    long = ChatMemoryBuffer.from_defaults(
        token_limit=5000,
        chat_history=[
            ChatMessage(role="user", content="My name is Lin."),
            ChatMessage(role="assistant", content="Pleased to meet you, dear Lin."),
        ],
    )
    both = SimpleComposableMemory.from_defaults(
        primary_memory=short, secondary_memory_sources=[long]
    )
    CondensePlusContextChatEngine.from_defaults(
        Shelf(RIVER),
        llm=talker("It carried twice its usual water, Lin."),
        memory=both,
        skip_condense=True,
    ).chat("And the river?")


@app(
    "a hybrid search that keeps what both searches found",
    question="What happened in the summer of 2022?",
    answer="The glacier lost ice.",
    chunks=[GLACIER],
    absent=[VALLEY],
)
def hybrid():
    class Both(BaseRetriever):
        """Nodes that are found by vectors and by words."""

        def _retrieve(self, query_bundle):
            by_vector = (
                index(GLACIER, VALLEY).as_retriever(similarity_top_k=2).retrieve(query_bundle)
            )
            by_word = {n.text for n in Shelf(GLACIER, RIVER).retrieve(query_bundle)}
            return [n for n in by_vector if n.text in by_word]

    RetrieverQueryEngine.from_args(Both(), llm=writer("The glacier lost ice.")).query(
        "What happened in the summer of 2022?"
    )


class Chat(StartEvent):
    messages: list[dict]
    user_id: str = ""


@app(
    "a service's request with messages like a provider's",
    question="How much ice was lost?",
    answer="3 metres of ice in one summer.",
    chunks=[GLACIER],
    prompt=["I write for a school paper."],
    absent=["How nice, what would you like to know?"],
    status="no_answer",
)
async def messages_in_request():
    class Service(Workflow):
        @step
        async def work(self, ev: Chat) -> StopEvent:
            history = [ChatMessage(role=m["role"], content=m["content"]) for m in ev.messages]
            nodes = await Shelf(GLACIER).aretrieve(history[-1].content)
            system = ChatMessage(role="system", content=f"Answer from: {nodes[0].text}")
            reply = await talker("3 metres of ice in one summer.").achat([system, *history])
            return StopEvent(result={"choices": [{"message": {"content": reply.message.content}}]})

    await Service(timeout=20).run(
        messages=[
            {"role": "user", "content": "I write for a school paper."},
            {"role": "assistant", "content": "How nice, what would you like to know?"},
            {"role": "user", "content": "How much ice was lost?"},
        ],
        user_id="u-17",
    )


@app(
    "a map over documents and a reduction, in a function of one's own engine",
    question="Which numbers are in the notes?",
    answer="3 metres, twice the water, and 9,000 guests.",
    chunks=[GLACIER, RIVER, VALLEY],
    absent=["three metres of it", "a doubling of it", "nine thousand visitors"],
)
def map_reduce():
    llm = writer(
        when(
            {
                "Notes so far": "3 metres, twice the water, and 9,000 guests.",
                GLACIER: "three metres of it",
                RIVER: "a doubling of it",
                VALLEY: "nine thousand visitors",
            }
        )
    )

    class MapReduce(CustomQueryEngine):
        def custom_query(self, query_str):
            nodes = Shelf(GLACIER, RIVER, VALLEY).retrieve(query_str)
            mapped = [llm.complete(f"Numbers in: {n.text}").text for n in nodes]
            notes = "; ".join(mapped)
            return llm.complete(f"Notes so far: {notes}. {query_str}").text

    MapReduce().query("Which numbers are in the notes?")


@app(
    "an agent loop of one's own over chat_with_tools",
    question="How much ice was lost?",
    answer="The loss was 3 metres.",
    chunks=[GLACIER],
    absent=["Let me look into the notes."],
)
async def own_loop():
    def notes(topic: str) -> str:
        """Notes on a topic."""
        return GLACIER

    tool = FunctionTool.from_defaults(notes)
    llm = talker(
        ["Let me look into the notes.", call("notes", topic="ice")], "The loss was 3 metres."
    )

    class Loop(Workflow):
        @step
        async def work(self, ev: StartEvent) -> StopEvent:
            history = [ChatMessage(role="user", content=ev.input)]
            while True:
                reply = await llm.achat_with_tools([tool], chat_history=history)
                history.append(reply.message)
                calls = llm.get_tool_calls_from_response(reply, error_on_no_tool_call=False)
                if not calls:
                    return StopEvent(result={"response": reply.message.content, "sources": []})
                for each in calls:
                    output = await tool.acall(**each.tool_kwargs)
                    history.append(
                        ChatMessage(
                            role="tool",
                            content=output.content,
                            additional_kwargs={"tool_call_id": each.tool_id},
                        )
                    )

    await Loop(timeout=20).run(input="How much ice was lost?")


@app(
    "an agent whose tool calls are shown to the user as they come",
    question="How much ice was lost, and how many guests came?",
    answer="3 metres of ice, 9,000 guests.",
    chunks=[GLACIER, VALLEY],
)
async def shown_calls():
    shown = defaultdict(list)

    def notes(topic: str) -> list[str]:
        """Notes on a topic."""
        return [GLACIER] if topic == "ice" else [VALLEY]

    llm = talker(
        call("notes", topic="ice"), call("notes", topic="guests"), "3 metres of ice, 9,000 guests."
    )
    handler = FunctionAgent(tools=[notes], llm=llm).run(
        "How much ice was lost, and how many guests came?", memory=memory()
    )
    async for event in handler.stream_events():
        if isinstance(event, ToolCallResult):
            shown[event.tool_name].append(event.tool_output.content)
    await handler
    assert len(shown["notes"]) == 2


@app(
    "an engine that hides names before the model and puts them back after",
    question="Who runs the hotel?",
    answer="Greta Moos runs it.",
    chunks=["The hotel is run by"],
    absent=["[NAME_1] runs it."],
)
def hidden_names():
    class Hiding(CustomQueryEngine):
        llm: object

        def custom_query(self, query_str):
            nodes = Shelf("The hotel is run by Greta Moos.").retrieve(query_str)
            hidden = re.sub("Greta Moos", "[NAME_1]", nodes[0].text)
            said = self.llm.complete(f"{hidden}\n{query_str}").text
            return said.replace("[NAME_1]", "Greta Moos")

    Hiding(llm=writer("[NAME_1] runs it.")).query("Who runs the hotel?")


@app(
    "an engine of engines made per document, with the answers in a table",
    question="Compare glacier and river.",
    answer=("| glacier | minus 3 metres |", "| river | twice the water |"),
    chunks=[GLACIER, RIVER],
)
async def table_of_answers():
    engines = {
        "glacier": index(GLACIER).as_query_engine(llm=talker("minus 3 metres")),
        "river": index(RIVER).as_query_engine(llm=talker("twice the water")),
    }

    class Compare(Workflow):
        @step
        async def work(self, ev: StartEvent) -> StopEvent:
            answers = await asyncio.gather(*(e.aquery(ev.query) for e in engines.values()))
            rows = [f"| {name} | {a} |" for name, a in zip(engines, answers, strict=True)]
            return StopEvent(result="\n".join(rows))

    await Compare(timeout=20).run(query="Compare glacier and river.")


@app(
    "an agent with a tool that plans queries for other tools",
    question="Ice and guests in 2022?",
    answer="3 metres less ice, 9,000 guests.",
    chunks=[GLACIER, VALLEY],
    absent=["Less ice, by three.", "Many guests, nine thousand."],
)
async def query_plan():
    engines = {
        "ice": index(GLACIER).as_query_engine(llm=writer("Less ice, by three.")),
        "hotel": index(VALLEY).as_query_engine(llm=writer("Many guests, nine thousand.")),
    }

    async def run_plan(nodes: list[dict]) -> str:
        """Run queries, each with the name of a tool."""
        results = [
            f"{each['tool_name']}: {await engines[each['tool_name']].aquery(each['query_str'])}"
            for each in nodes
        ]
        return "\n".join(results)

    plan = [
        {"tool_name": "ice", "query_str": "loss"},
        {"tool_name": "hotel", "query_str": "guests"},
    ]
    llm = talker(call("run_plan", nodes=plan), "3 metres less ice, 9,000 guests.")
    await FunctionAgent(tools=[run_plan], llm=llm).run("Ice and guests in 2022?", memory=memory())


@app(
    "an agent whose engine tool is asked twice, once in vain",
    question="How many guests came in 2022?",
    answer="9,000 people.",
    chunks=[VALLEY],
    absent=["Nine thousand in that year."],
    allowed=["Empty Response"],
)
async def asked_twice():
    class ByYear(BaseRetriever):
        def _retrieve(self, query_bundle):
            return [scored(VALLEY)] if "2022" in query_bundle.query_str else []

    tool = QueryEngineTool.from_defaults(
        RetrieverQueryEngine.from_args(ByYear(), llm=writer("Nine thousand in that year.")),
        name="hotel",
        description="The hotel",
    )
    llm = talker(call("hotel", input="guests"), call("hotel", input="guests 2022"), "9,000 people.")
    await FunctionAgent(tools=[tool], llm=llm).run("How many guests came in 2022?", memory=memory())
