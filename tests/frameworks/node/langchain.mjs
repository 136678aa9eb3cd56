import { LangChainInstrumentation } from "@arizeai/openinference-instrumentation-langchain";
import * as callbacks from "@langchain/core/callbacks/manager";
import { tool } from "@langchain/core/tools";
import { ChatOpenAI } from "@langchain/openai";
import { createAgent } from "langchain";
import { z } from "zod";
import { askTwice, modelUrl, provider, search } from "./tracing.mjs";

const instrumentation = new LangChainInstrumentation({ tracerProvider: provider });
instrumentation.setTracerProvider(provider);
instrumentation.manuallyInstrument(callbacks);

const model = new ChatOpenAI({
  model: "scripted",
  apiKey: "none",
  configuration: { baseURL: modelUrl },
});
const schema = z.object({ query: z.string() });
const tools = [tool(search, { name: "search", description: "Search the handbook.", schema })];
const agent = createAgent({ model, tools });
await askTwice((question) => agent.invoke({ messages: [{ role: "user", content: question }] }));
