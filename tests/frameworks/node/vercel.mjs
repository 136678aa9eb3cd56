import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import * as ai from "ai";
import { z } from "zod";
import { askTwice, modelUrl, provider, search } from "./tracing.mjs";

const models = createOpenAICompatible({ name: "scripted", baseURL: modelUrl, apiKey: "none" });
const tracer = provider.getTracer("ai");
const settings = { isEnabled: true, recordInputs: true, recordOutputs: true, tracer };
let telemetry = { experimental_telemetry: settings };
try {
  // Version 7 moved it into a package of its own.
  const { OpenTelemetry } = await import("@ai-sdk/otel");
  ai.registerTelemetry(new OpenTelemetry({ tracer }));
  telemetry = { telemetry: { isEnabled: true, recordInputs: true, recordOutputs: true } };
} catch {}

await askTwice((question) =>
  ai.generateText({
    model: models("scripted"),
    system: "Answer from what the search finds.",
    prompt: question,
    stopWhen: ai.stepCountIs(3),
    tools: {
      search: ai.tool({
        description: "Search the handbook.",
        inputSchema: z.object({ query: z.string() }),
        execute: search,
      }),
    },
    ...telemetry,
  }),
);
