// A tracer provider that sends every span to OTLP_URL, and what all applications ask and search.
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { NodeTracerProvider, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-node";

export const provider = new NodeTracerProvider({
  spanProcessors: [new SimpleSpanProcessor(new OTLPTraceExporter({ url: process.env.OTLP_URL }))],
});
provider.register();
export const modelUrl = `${process.env.MODEL_URL}/v1`;
export const texts = JSON.parse(process.env.TEXTS);
export const search = async () => texts.join("\n");

export async function askTwice(ask) {
  for (let time = 0; time < 2; time += 1) await ask(process.env.QUESTION);
  await provider.forceFlush();
  await provider.shutdown();
}
