"""The same RAG, written as each framework's documentation has it, under one instrumentation each.

Every application is a function of a tracer provider and a model server's address that gives a
function to ask; imports are inside, since each runs in an environment of its own.
"""

import asyncio
import json
from contextlib import contextmanager
from typing import NamedTuple

from scripted_models import TEXTS

MODEL = "scripted"
KEY = "none"
SYSTEM = "Answer from what the search finds."


class Application(NamedTuple):
    framework: str
    instrumentation: str
    packages: tuple[str, ...]
    make: object


APPLICATIONS: dict[str, Application] = {}


def application(framework, instrumentation, *packages):
    def add(make):
        APPLICATIONS[make.__name__] = Application(framework, instrumentation, packages, make)
        return make

    return add


def search(query: str) -> str:
    """Search the handbook.

    Args:
        query: What to look for.
    """
    return "\n".join(TEXTS)


@contextmanager
def request(provider):
    """What a web framework's instrumentation puts around everything."""
    from opentelemetry.trace import SpanKind

    tracer = provider.get_tracer("opentelemetry.instrumentation.fastapi")
    with tracer.start_as_current_span("POST /ask", kind=SpanKind.SERVER):
        yield


def openai_tool_loop(client, provider, question):
    """A model's client and a loop of one's own, as the provider's documentation shows it."""
    parameters = {"type": "object", "properties": {"query": {"type": "string"}}}
    tools = [{"type": "function", "function": {"name": "search", "parameters": parameters}}]
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": question}]
    with request(provider):
        while True:
            made = client.chat.completions.create(model=MODEL, messages=messages, tools=tools)
            message = made.choices[0].message
            if not message.tool_calls:
                return message.content
            messages.append(message.model_dump(exclude_none=True))
            for call in message.tool_calls:
                found = search(**json.loads(call.function.arguments))
                messages.append({"role": "tool", "tool_call_id": call.id, "content": found})


def anthropic_tool_loop(client, provider, question):
    schema = {"type": "object", "properties": {"query": {"type": "string"}}}
    tools = [{"name": "search", "description": "Search.", "input_schema": schema}]
    messages = [{"role": "user", "content": question}]
    with request(provider):
        while True:
            made = client.messages.create(
                model=MODEL, max_tokens=99, system=SYSTEM, messages=messages, tools=tools
            )
            if made.stop_reason != "tool_use":
                return made.content[0].text
            messages.append({"role": "assistant", "content": made.content})
            results = [
                {"type": "tool_result", "tool_use_id": b.id, "content": search(**b.input)}
                for b in made.content
                if b.type == "tool_use"
            ]
            messages.append({"role": "user", "content": results})


# --- clients of providers -------------------------------------------------------------------------


def openai_client(url):
    from openai import OpenAI

    return OpenAI(base_url=f"{url}/v1", api_key=KEY)


@application("OpenAI SDK", "OpenInference", "openai", "openinference-instrumentation-openai")
def openai_openinference(provider, url):
    from openinference.instrumentation.openai import OpenAIInstrumentor

    OpenAIInstrumentor().instrument(tracer_provider=provider)
    return lambda question: openai_tool_loop(openai_client(url), provider, question)


@application(
    "OpenAI SDK",
    "OpenTelemetry",
    # The newest asks for a helper library that its own release does not have.
    *("openai", "httpx", "opentelemetry-instrumentation-openai-v2<=2.3b0", "wrapt<2"),
)
def openai_opentelemetry(provider, url):
    from opentelemetry.instrumentation.openai_v2 import OpenAIInstrumentor

    OpenAIInstrumentor().instrument(tracer_provider=provider)
    return lambda question: openai_tool_loop(openai_client(url), provider, question)


@application(
    "OpenAI SDK, Chroma",
    "OpenLLMetry",
    *("openai", "chromadb", "opentelemetry-instrumentation-openai"),
    "opentelemetry-instrumentation-chromadb",
)
def openai_chroma_openllmetry(provider, url):
    import chromadb
    from opentelemetry.instrumentation.chromadb import ChromaInstrumentor
    from opentelemetry.instrumentation.openai import OpenAIInstrumentor

    OpenAIInstrumentor().instrument(tracer_provider=provider)
    ChromaInstrumentor().instrument(tracer_provider=provider)
    store = chromadb.EphemeralClient().create_collection("handbook", embedding_function=None)
    vectors = [[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]]
    store.add(ids=["d0", "d1", "d2"], documents=list(TEXTS), embeddings=vectors)
    client = openai_client(url)

    def ask(question):
        with request(provider):
            found = store.query(query_embeddings=[[1.0, 0.0]], n_results=3)["documents"][0]
            messages = [
                {"role": "system", "content": "Answer from:\n" + "\n\n".join(found)},
                {"role": "user", "content": question},
            ]
            made = client.chat.completions.create(model=MODEL, messages=messages)
            return made.choices[0].message.content

    return ask


@application(
    "Anthropic SDK", "OpenInference", "anthropic", "openinference-instrumentation-anthropic"
)
def anthropic_openinference(provider, url):
    from anthropic import Anthropic
    from openinference.instrumentation.anthropic import AnthropicInstrumentor

    AnthropicInstrumentor().instrument(tracer_provider=provider)
    client = Anthropic(base_url=url, api_key=KEY)
    return lambda question: anthropic_tool_loop(client, provider, question)


@application("Anthropic SDK", "OpenLLMetry", "anthropic", "opentelemetry-instrumentation-anthropic")
def anthropic_openllmetry(provider, url):
    from anthropic import Anthropic
    from opentelemetry.instrumentation.anthropic import AnthropicInstrumentor

    AnthropicInstrumentor().instrument(tracer_provider=provider)
    client = Anthropic(base_url=url, api_key=KEY)
    return lambda question: anthropic_tool_loop(client, provider, question)


@application("LiteLLM", "OpenInference", "litellm", "mcp", "openinference-instrumentation-litellm")
def litellm_openinference(provider, url):
    import litellm
    from openinference.instrumentation.litellm import LiteLLMInstrumentor

    LiteLLMInstrumentor().instrument(tracer_provider=provider)

    class Client:
        class chat:  # noqa: N801 - as OpenAI's has it
            class completions:  # noqa: N801
                @staticmethod
                def create(model, **given):
                    return litellm.completion(
                        f"openai/{model}", api_base=f"{url}/v1", api_key=KEY, **given
                    )

    return lambda question: openai_tool_loop(Client, provider, question)


# --- frameworks -----------------------------------------------------------------------------------


def langchain_agent(url):
    from langchain.agents import create_agent
    from langchain_openai import ChatOpenAI

    model = ChatOpenAI(model=MODEL, base_url=f"{url}/v1", api_key=KEY)
    agent = create_agent(model, [search], system_prompt=SYSTEM)

    def ask(question, config=None):
        return agent.invoke({"messages": [{"role": "user", "content": question}]}, config)

    return ask


LANGCHAIN = ("langchain", "langchain-openai")


@application("LangChain", "OpenInference", *LANGCHAIN, "openinference-instrumentation-langchain")
def langchain_openinference(provider, url):
    from openinference.instrumentation.langchain import LangChainInstrumentor

    LangChainInstrumentor().instrument(tracer_provider=provider)
    return langchain_agent(url)


@application("LangChain", "OpenLLMetry", *LANGCHAIN, "opentelemetry-instrumentation-langchain")
def langchain_openllmetry(provider, url):
    from opentelemetry.instrumentation.langchain import LangchainInstrumentor

    LangchainInstrumentor().instrument(tracer_provider=provider)
    return langchain_agent(url)


def llama_index_engine(url):
    from llama_index.core import MockEmbedding, VectorStoreIndex
    from llama_index.core.schema import TextNode
    from llama_index.llms.openai_like import OpenAILike

    nodes = [TextNode(text=text, id_=f"d{n}") for n, text in enumerate(TEXTS)]
    index = VectorStoreIndex(nodes, embed_model=MockEmbedding(2))
    model = OpenAILike(MODEL, api_base=f"{url}/v1", api_key=KEY, is_chat_model=True)
    return index.as_query_engine(llm=model, similarity_top_k=3).query


LLAMA_INDEX = ("llama-index-core", "llama-index-llms-openai-like")


@application(
    "LlamaIndex", "OpenInference", *LLAMA_INDEX, "openinference-instrumentation-llama-index"
)
def llama_index_openinference(provider, url):
    from openinference.instrumentation.llama_index import LlamaIndexInstrumentor

    LlamaIndexInstrumentor().instrument(tracer_provider=provider)
    return llama_index_engine(url)


@application("LlamaIndex", "OpenLLMetry", *LLAMA_INDEX, "opentelemetry-instrumentation-llamaindex")
def llama_index_openllmetry(provider, url):
    from opentelemetry.instrumentation.llamaindex import LlamaIndexInstrumentor

    LlamaIndexInstrumentor().instrument(tracer_provider=provider)
    return llama_index_engine(url)


@application(
    "LlamaIndex's agents", "OpenLLMetry", *LLAMA_INDEX, "opentelemetry-instrumentation-llamaindex"
)
def llama_index_agent_openllmetry(provider, url):
    from llama_index.core.agent.workflow import FunctionAgent
    from llama_index.llms.openai_like import OpenAILike
    from opentelemetry.instrumentation.llamaindex import LlamaIndexInstrumentor

    LlamaIndexInstrumentor().instrument(tracer_provider=provider)
    kinds = {"is_chat_model": True, "is_function_calling_model": True}
    model = OpenAILike(MODEL, api_base=f"{url}/v1", api_key=KEY, **kinds)

    async def answer(question):
        return await FunctionAgent(tools=[search], llm=model, system_prompt=SYSTEM).run(question)

    return lambda question: asyncio.run(answer(question))


def openai_agent(instrumentor, provider, url):
    from agents import Agent, OpenAIResponsesModel, Runner, function_tool, set_trace_processors
    from openai import AsyncOpenAI

    set_trace_processors([])  # not to OpenAI
    instrumentor.instrument(tracer_provider=provider)

    async def answer(question):
        model = OpenAIResponsesModel(MODEL, AsyncOpenAI(base_url=f"{url}/v1", api_key=KEY))
        agent = Agent("shop", instructions=SYSTEM, tools=[function_tool(search)], model=model)
        return await Runner.run(agent, question)

    return lambda question: asyncio.run(answer(question))


@application(
    "OpenAI Agents",
    "OpenInference",
    *("openai-agents", "openinference-instrumentation-openai-agents"),
)
def openai_agents_openinference(provider, url):
    from openinference.instrumentation.openai_agents import OpenAIAgentsInstrumentor

    return openai_agent(OpenAIAgentsInstrumentor(), provider, url)


@application(
    "OpenAI Agents", "OpenLLMetry", "openai-agents", "opentelemetry-instrumentation-openai-agents"
)
def openai_agents_openllmetry(provider, url):
    from opentelemetry.instrumentation.openai_agents import OpenAIAgentsInstrumentor

    return openai_agent(OpenAIAgentsInstrumentor(), provider, url)


@application("Pydantic AI", "its own", "pydantic-ai-slim[openai]")
def pydantic_ai(provider, url):
    from pydantic_ai import Agent
    from pydantic_ai.capabilities import Instrumentation
    from pydantic_ai.models.instrumented import InstrumentationSettings
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    model = OpenAIChatModel(MODEL, provider=OpenAIProvider(base_url=f"{url}/v1", api_key=KEY))
    settings = InstrumentationSettings(tracer_provider=provider)
    agent = Agent(
        model, system_prompt=SYSTEM, tools=[search], capabilities=[Instrumentation(settings)]
    )
    return agent.run_sync


def haystack_pipeline(url):
    from haystack import Document, Pipeline
    from haystack.components.builders import ChatPromptBuilder
    from haystack.components.generators.chat import OpenAIChatGenerator
    from haystack.components.retrievers.in_memory import InMemoryBM25Retriever
    from haystack.dataclasses import ChatMessage
    from haystack.document_stores.in_memory import InMemoryDocumentStore
    from haystack.utils import Secret

    store = InMemoryDocumentStore()
    store.write_documents([Document(content=text, id=f"d{n}") for n, text in enumerate(TEXTS)])
    template = "Answer from:\n{% for d in documents %}{{ d.content }}\n{% endfor %}\n{{ question }}"
    model = OpenAIChatGenerator(
        api_key=Secret.from_token(KEY), model=MODEL, api_base_url=f"{url}/v1"
    )
    pipeline = Pipeline()
    pipeline.add_component("retriever", InMemoryBM25Retriever(store, top_k=3))
    prompt = ChatPromptBuilder([ChatMessage.from_user(template)], required_variables="*")
    pipeline.add_component("prompt", prompt)
    pipeline.add_component("model", model)
    pipeline.connect("retriever", "prompt.documents")
    pipeline.connect("prompt", "model")
    return lambda question: pipeline.run(
        {"retriever": {"query": question}, "prompt": {"question": question}}
    )


@application("Haystack", "OpenInference", "haystack-ai", "openinference-instrumentation-haystack")
def haystack_openinference(provider, url):
    from openinference.instrumentation.haystack import HaystackInstrumentor

    HaystackInstrumentor().instrument(tracer_provider=provider)
    return haystack_pipeline(url)


@application(
    "smolagents",
    "OpenInference",
    *("smolagents[openai]", "openinference-instrumentation-smolagents"),
)
def smolagents(provider, url):
    from openinference.instrumentation.smolagents import SmolagentsInstrumentor

    SmolagentsInstrumentor().instrument(tracer_provider=provider)
    from smolagents import OpenAIServerModel, ToolCallingAgent, tool

    model = OpenAIServerModel(MODEL, api_base=f"{url}/v1", api_key=KEY)
    return ToolCallingAgent([tool(search)], model, verbosity_level=0).run


@application("Strands", "its own", "strands-agents[openai]")
def strands(provider, url):
    from strands import Agent, tool
    from strands.models.openai import OpenAIModel

    def ask(question):
        model = OpenAIModel(client_args={"base_url": f"{url}/v1", "api_key": KEY}, model_id=MODEL)
        agent = Agent(model, tools=[tool(search)], system_prompt=SYSTEM, callback_handler=None)
        return agent(question)

    return ask


@application("DSPy", "OpenInference", "dspy", "openinference-instrumentation-dspy")
def dspy(provider, url):
    import dspy
    from openinference.instrumentation.dspy import DSPyInstrumentor

    DSPyInstrumentor().instrument(tracer_provider=provider)
    dspy.configure(lm=dspy.LM(f"openai/{MODEL}", api_base=f"{url}/v1", api_key=KEY, cache=False))

    class RAG(dspy.Module):
        def __init__(self):
            super().__init__()
            self.respond = dspy.Predict("context: list[str], question -> answer")

        def forward(self, question):
            return self.respond(context=list(TEXTS), question=question)

    rag = RAG()
    return lambda question: rag(question=question)


@application("Agno", "OpenInference", "agno", "openai", "openinference-instrumentation-agno")
def agno(provider, url):
    from openinference.instrumentation.agno import AgnoInstrumentor

    AgnoInstrumentor().instrument(tracer_provider=provider)
    from agno.agent import Agent
    from agno.models.openai import OpenAIChat

    model = OpenAIChat(MODEL, base_url=f"{url}/v1", api_key=KEY)
    return lambda question: Agent(model=model, tools=[search], telemetry=False).run(question)


@application(
    "AutoGen",
    "OpenInference",
    *("autogen-agentchat", "autogen-ext[openai]"),
    "openinference-instrumentation-autogen-agentchat",
)
def autogen(provider, url):
    from autogen_agentchat.agents import AssistantAgent
    from autogen_ext.models.openai import OpenAIChatCompletionClient
    from openinference.instrumentation.autogen_agentchat import AutogenAgentChatInstrumentor

    AutogenAgentChatInstrumentor().instrument(tracer_provider=provider)
    features = ("vision", "function_calling", "json_output", "structured_output")
    info = {**dict.fromkeys(features, True), "vision": False, "family": "unknown"}

    async def answer(question):
        client = OpenAIChatCompletionClient(
            model=MODEL, base_url=f"{url}/v1", api_key=KEY, model_info=info
        )
        agent = AssistantAgent("shop", client, tools=[search], reflect_on_tool_use=True)
        return await agent.run(task=question)

    return lambda question: asyncio.run(answer(question))


@application("Agent Framework", "its own", "agent-framework-core", "agent-framework-openai")
def agent_framework(provider, url):
    from agent_framework import Agent
    from agent_framework.observability import enable_instrumentation
    from agent_framework.openai import OpenAIChatCompletionClient

    enable_instrumentation(enable_sensitive_data=True)

    async def answer(question):
        client = OpenAIChatCompletionClient(model=MODEL, base_url=f"{url}/v1", api_key=KEY)
        return await Agent(client, SYSTEM, name="shop", tools=[search]).run(question)

    return lambda question: asyncio.run(answer(question))


@application("Semantic Kernel", "its own", "semantic-kernel")
def semantic_kernel(provider, url):
    from openai import AsyncOpenAI
    from semantic_kernel.agents import ChatCompletionAgent
    from semantic_kernel.connectors.ai.open_ai import OpenAIChatCompletion
    from semantic_kernel.functions import kernel_function

    class Handbook:
        @kernel_function(description="Search the handbook.")
        def search(self, query: str) -> str:
            return search(query)

    async def answer(question):
        client = AsyncOpenAI(base_url=f"{url}/v1", api_key=KEY)
        service = OpenAIChatCompletion(ai_model_id=MODEL, async_client=client)
        agent = ChatCompletionAgent(service=service, plugins=[Handbook()], name="shop")
        return await agent.get_response(messages=question)

    return lambda question: asyncio.run(answer(question))


def adk_runner(url):
    from google.adk.agents import LlmAgent
    from google.adk.models.lite_llm import LiteLlm
    from google.adk.runners import InMemoryRunner
    from google.genai import types

    model = LiteLlm(f"openai/{MODEL}", api_base=f"{url}/v1", api_key=KEY)
    agent = LlmAgent(name="shop", model=model, instruction=SYSTEM, tools=[search])

    async def answer(question):
        runner = InMemoryRunner(agent, app_name="shop")
        session = await runner.session_service.create_session(app_name="shop", user_id="u")
        message = types.Content(role="user", parts=[types.Part(text=question)])
        given = {"user_id": "u", "session_id": session.id, "new_message": message}
        return [event async for event in runner.run_async(**given)]

    return lambda question: asyncio.run(answer(question))


@application("Google ADK", "its own", "google-adk", "litellm", "mcp")
def google_adk_own(provider, url):
    return adk_runner(url)


@application(
    "Google ADK",
    "OpenInference",
    *("google-adk", "litellm", "mcp", "openinference-instrumentation-google-adk"),
)
def google_adk(provider, url):
    from openinference.instrumentation.google_adk import GoogleADKInstrumentor

    GoogleADKInstrumentor().instrument(tracer_provider=provider)
    return adk_runner(url)


def crew(url):
    from crewai import LLM, Agent, Crew, Task
    from crewai.tools import tool

    model = LLM(f"openai/{MODEL}", base_url=f"{url}/v1", api_key=KEY)
    clerk = Agent(
        role="clerk", goal="help", backstory="A shop.", llm=model, tools=[tool("search")(search)]
    )

    def ask(question):
        task = Task(description="{question}", expected_output="an answer", agent=clerk)
        return Crew(agents=[clerk], tasks=[task]).kickoff({"question": question})

    return ask


@application("CrewAI", "OpenInference", "crewai", "openinference-instrumentation-crewai")
def crewai(provider, url):
    from openinference.instrumentation.crewai import CrewAIInstrumentor

    CrewAIInstrumentor().instrument(tracer_provider=provider)
    return crew(url)


@application(
    "CrewAI",
    "OpenLLMetry",
    *("crewai", "opentelemetry-instrumentation-crewai", "opentelemetry-instrumentation-openai"),
)
def crewai_openllmetry(provider, url):
    from opentelemetry.instrumentation.crewai import CrewAIInstrumentor
    from opentelemetry.instrumentation.openai import OpenAIInstrumentor

    CrewAIInstrumentor().instrument(tracer_provider=provider)
    OpenAIInstrumentor().instrument(tracer_provider=provider)
    return crew(url)


# --- tracing backends' own ------------------------------------------------------------------------


def by_hand(client, observe):
    """Plain functions, each marked as a span of a kind."""

    def retrieve(query):
        hits = enumerate(TEXTS)
        return [{"page_content": text, "metadata": {}, "id": f"d{n}"} for n, text in hits]

    def generate(messages):
        made = client.chat.completions.create(model=MODEL, messages=messages)
        return made.choices[0].message.content

    retrieve, generate = observe(retrieve, "retriever"), observe(generate, "generation")

    def ask(question):
        found = "\n".join(each["page_content"] for each in retrieve(question))
        system = {"role": "system", "content": f"Answer from:\n{found}"}
        return generate([system, {"role": "user", "content": question}])

    return observe(ask, "chain")


@application("Langfuse's decorators", "Langfuse", "langfuse", "openai")
def langfuse(provider, url):
    from langfuse import Langfuse, observe

    Langfuse(public_key="pk", secret_key="sk", base_url=url, tracer_provider=provider)
    return by_hand(openai_client(url), lambda function, kind: observe(as_type=kind)(function))


@application("LangChain", "Langfuse", "langfuse", *LANGCHAIN)
def langchain_langfuse(provider, url):
    from langfuse import Langfuse
    from langfuse.langchain import CallbackHandler

    Langfuse(public_key="pk", secret_key="sk", base_url=url, tracer_provider=provider)
    agent, config = langchain_agent(url), {"callbacks": [CallbackHandler()]}
    return lambda question: agent(question, config)


# --- what products write themselves ---------------------------------------------------------------


def _search_then(provider, ask):
    """A search of one's own in a span, and a model that is asked from what it found."""
    from opentelemetry.trace import get_tracer

    def answer(question):
        with request(provider):
            with get_tracer("shop").start_as_current_span("search handbook") as span:
                hits = [{"id": f"d{n}", "content": text} for n, text in enumerate(TEXTS)]
                span.set_attribute("gen_ai.operation.name", "retrieval")
                span.set_attribute("gen_ai.retrieval.query.text", question)
                span.set_attribute("gen_ai.retrieval.documents", json.dumps(hits))
            return ask(f"{SYSTEM}\n" + "\n".join(TEXTS), question)

    return answer


@application("OpenAI SDK", "Logfire", "logfire", "openai")
def openai_logfire(provider, url):
    import logfire

    # It makes a provider of its own, and takes processors for it.
    processors = [provider._active_span_processor]
    logfire.configure(send_to_logfire=False, console=False, additional_span_processors=processors)
    client = openai_client(url)
    logfire.instrument_openai(client)

    def ask(system, question):
        messages = [{"role": "system", "content": system}, {"role": "user", "content": question}]
        return client.chat.completions.create(model=MODEL, messages=messages)

    return _search_then(provider, ask)


@application("Anthropic SDK", "Logfire", "logfire", "anthropic")
def anthropic_logfire(provider, url):
    import logfire
    from anthropic import Anthropic

    # It makes a provider of its own, and takes processors for it.
    processors = [provider._active_span_processor]
    logfire.configure(send_to_logfire=False, console=False, additional_span_processors=processors)
    client = Anthropic(base_url=url, api_key=KEY)
    logfire.instrument_anthropic(client)

    def ask(system, question):
        messages = [{"role": "user", "content": question}]
        return client.messages.create(model=MODEL, max_tokens=99, system=system, messages=messages)

    return _search_then(provider, ask)


@application("functions of one's own", "LangSmith", "langsmith", "openai")
def traceable_langsmith(provider, url):
    import os

    os.environ |= {
        "LANGSMITH_TRACING": "true",
        "LANGSMITH_OTEL_ENABLED": "true",
        "LANGSMITH_OTEL_ONLY": "true",
        "LANGSMITH_API_KEY": KEY,
    }
    from langsmith import Client, traceable
    from langsmith.wrappers import wrap_openai

    traces = Client()
    client = wrap_openai(openai_client(url))

    @traceable(run_type="retriever", client=traces)
    def retrieve(query):
        return [{"page_content": text, "type": "Document", "metadata": {}} for text in TEXTS]

    @traceable(client=traces)
    def ask(question):
        texts = "\n".join(each["page_content"] for each in retrieve(question))
        messages = [
            {"role": "system", "content": f"{SYSTEM}\n{texts}"},
            {"role": "user", "content": question},
        ]
        made = client.chat.completions.create(model=MODEL, messages=messages)
        traces.flush()
        return made.choices[0].message.content

    def ask_and_flush(question):
        ask(question)
        traces.flush()

    return ask_and_flush


@application("OpenAI Agents", "Logfire", "logfire", "openai-agents")
def agents_logfire(provider, url):
    import logfire
    from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool
    from openai import AsyncOpenAI

    logfire.configure(
        send_to_logfire=False,
        console=False,
        additional_span_processors=[provider._active_span_processor],
    )
    logfire.instrument_openai_agents()

    def ask(question):
        client = AsyncOpenAI(base_url=f"{url}/v1", api_key=KEY)
        model = OpenAIChatCompletionsModel(model=MODEL, openai_client=client)
        agent = Agent(name="shop", instructions=SYSTEM, model=model, tools=[function_tool(search)])
        return asyncio.run(Runner.run(agent, question)).final_output

    return ask


@application("Pydantic AI, streamed", "Logfire", "logfire", "pydantic-ai-slim[openai]")
def pydantic_ai_logfire(provider, url):
    import logfire
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    logfire.configure(
        send_to_logfire=False,
        console=False,
        additional_span_processors=[provider._active_span_processor],
    )
    logfire.instrument_pydantic_ai()
    model = OpenAIChatModel(MODEL, provider=OpenAIProvider(base_url=f"{url}/v1", api_key=KEY))
    agent = Agent(model, instructions=SYSTEM, tools=[search])

    async def answer(question):
        async with agent.run_stream(question) as stream:
            return await stream.get_output()

    return lambda question: asyncio.run(answer(question))


@application("LangChain", "LangSmith", "langsmith", "langchain", "langchain-openai")
def langchain_langsmith(provider, url):
    import os

    os.environ |= {
        "LANGSMITH_TRACING": "true",
        "LANGSMITH_OTEL_ENABLED": "true",
        "LANGSMITH_OTEL_ONLY": "true",
        "LANGSMITH_API_KEY": KEY,
    }
    from langchain.agents import create_agent
    from langchain_core.tracers.langchain import wait_for_all_tracers
    from langchain_openai import ChatOpenAI

    model = ChatOpenAI(model=MODEL, base_url=f"{url}/v1", api_key=KEY)
    agent = create_agent(model, [search], system_prompt=SYSTEM)

    def ask(question):
        agent.invoke({"messages": [{"role": "user", "content": question}]})
        wait_for_all_tracers()

    return ask


@application(
    "OpenAI SDK, Chroma",
    "Langtrace",
    *("langtrace-python-sdk", "openai", "chromadb", "importlib_metadata"),
)
def openai_chroma_langtrace(provider, url):
    import chromadb
    from langtrace_python_sdk import langtrace
    from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

    class Passing(SpanExporter):
        """Langtrace makes a provider of its own; what it exports goes to the other's processors."""

        def export(self, spans):
            for each in spans:
                provider._active_span_processor.on_end(each)
            return SpanExportResult.SUCCESS

    langtrace.init(api_key=KEY, custom_remote_exporter=Passing(), batch=False)
    store = chromadb.EphemeralClient().create_collection("handbook", embedding_function=None)
    vectors = [[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]]
    store.add(ids=["d0", "d1", "d2"], documents=list(TEXTS), embeddings=vectors)
    client = openai_client(url)

    def ask(question):
        with request(provider):
            hits = store.query(query_embeddings=[[1.0, 0.0]], n_results=3)
            system = f"{SYSTEM}\n" + "\n".join(hits["documents"][0])
            messages = [
                {"role": "system", "content": system},
                {"role": "user", "content": question},
            ]
            client.chat.completions.create(model=MODEL, messages=messages)

    return ask
