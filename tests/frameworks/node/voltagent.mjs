import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { SimpleSpanProcessor } from "@opentelemetry/sdk-trace-node";
import { Agent, createTool, VoltAgentObservability } from "@voltagent/core";
import { z } from "zod";

// VoltAgent makes a provider of its own, and takes processors for it.
const exporter = new OTLPTraceExporter({ url: process.env.OTLP_URL });
const processor = new SimpleSpanProcessor(exporter);
const observability = new VoltAgentObservability({ spanProcessors: [processor] });
const scripted = createOpenAICompatible({ name: "scripted", baseURL: `${process.env.MODEL_URL}/v1` });
const search = createTool({
  name: "search",
  description: "Search the handbook.",
  parameters: z.object({ query: z.string() }),
  execute: async () => JSON.parse(process.env.TEXTS).join("\n"),
});
const agent = new Agent({
  name: "shop",
  instructions: "Answer from what the search finds.",
  model: scripted("scripted"),
  tools: [search],
  observability,
});
for (let time = 0; time < 2; time += 1) await agent.generateText(process.env.QUESTION);
await processor.forceFlush();
process.exit(0);
