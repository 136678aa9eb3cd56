import { Document, genkit, z } from "genkit";
import { askTwice, modelUrl, provider, texts } from "./tracing.mjs";

// Genkit has its own spans, and takes the provider that is registered.
void provider;
const ai = genkit({});
const model = ai.defineModel({ name: "scripted" }, async (request) => {
  const messages = request.messages.map(({ role, content }) => ({
    role: role === "model" ? "assistant" : role,
    content: content.map((part) => part.text).join(""),
  }));
  const response = await fetch(`${modelUrl}/chat/completions`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ model: "scripted", messages }),
  });
  const { choices } = await response.json();
  const content = [{ text: choices[0].message.content }];
  return { message: { role: "model", content }, finishReason: "stop" };
});
const handbook = ai.defineRetriever({ name: "handbook" }, async () => ({
  documents: texts.map((text) => Document.fromText(text)),
}));
const ask = ai.defineFlow(
  { name: "ask", inputSchema: z.string(), outputSchema: z.string() },
  async (question) => {
    const docs = await ai.retrieve({ retriever: handbook, query: question });
    const system = `Answer from the handbook:\n${docs.map((doc) => doc.text).join("\n")}`;
    return (await ai.generate({ model, system, prompt: question })).text;
  },
);
await askTwice(ask);
