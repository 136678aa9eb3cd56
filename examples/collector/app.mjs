// A RAG in LangChain.js, traced by OpenInference. It knows nothing of ragaliq: its spans go by OTLP
// to OTEL_EXPORTER_OTLP_ENDPOINT. Only the model plays back answers, so that no key is needed.
import { LangChainInstrumentation } from "@arizeai/openinference-instrumentation-langchain";
import * as callbacks from "@langchain/core/callbacks/manager";
import { Document } from "@langchain/core/documents";
import { StringOutputParser } from "@langchain/core/output_parsers";
import { ChatPromptTemplate } from "@langchain/core/prompts";
import { BaseRetriever } from "@langchain/core/retrievers";
import { RunnablePassthrough, RunnableSequence } from "@langchain/core/runnables";
import { FakeListChatModel } from "@langchain/core/utils/testing";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import { BatchSpanProcessor, NodeTracerProvider } from "@opentelemetry/sdk-trace-node";

const provider = new NodeTracerProvider({
  spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter())],
});
provider.register();
const instrumentation = new LangChainInstrumentation({ tracerProvider: provider });
instrumentation.setTracerProvider(provider);
instrumentation.manuallyInstrument(callbacks);

const handbook = [
  "Refunds are paid within five working days.",
  "The shop is open from nine to five on weekdays.",
  "Bicycles can be returned within 30 days, if they are clean.",
];

class Handbook extends BaseRetriever {
  lc_namespace = ["demo"];

  async _getRelevantDocuments(question) {
    const words = new Set(question.toLowerCase().match(/\w{4,}/g));
    const score = (text) => text.toLowerCase().match(/\w{4,}/g).filter((w) => words.has(w)).length;
    return handbook
      .toSorted((a, b) => score(b) - score(a))
      .slice(0, 2)
      .map((text) => new Document({ pageContent: text }));
  }
}

const answers = {
  "How long do refunds take?": "Refunds are paid within five working days. They come in cash.",
  "When is the shop open?": "The shop is open from nine to five on weekdays.",
  "Can bicycles be returned?": "Bicycles can be returned within 90 days.",
};

const model = new FakeListChatModel({ responses: Object.values(answers) });
const prompt = ChatPromptTemplate.fromMessages([
  ["system", "Answer from these excerpts of the handbook only:\n\n{context}"],
  ["human", "{question}"],
]);
const join = (documents) => documents.map((document) => document.pageContent).join("\n\n");
const chain = RunnableSequence.from([
  { context: new Handbook().pipe(join), question: new RunnablePassthrough() },
  prompt,
  model,
  new StringOutputParser(),
]);

for (const question of Object.keys(answers)) await chain.invoke(question);
await provider.forceFlush();
await provider.shutdown();
