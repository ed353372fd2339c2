// Drives a memory with the official TypeScript client: lists the tools, remembers,
// recalls and forgets. The argument is a URL, or a command as a JSON array. What was
// seen is printed as one JSON object.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const target = process.argv[2];
const transport = target.startsWith("http")
  ? new StreamableHTTPClientTransport(new URL(target))
  : new StdioClientTransport({ command: JSON.parse(target)[0], args: JSON.parse(target).slice(1), env: process.env });
const client = new Client({ name: "typescript", version: "1.0.0" });
await client.connect(transport);

const call = async (name, args) => {
  const result = await client.callTool({ name, arguments: args });
  return { error: result.isError === true, text: result.content[0].text, doc: result.structuredContent };
};
const { tools } = await client.listTools();
const remembered = await call("remember", { text: "灯塔 lamps are lit at seven.", tags: ["lamp"] });
const recalled = await call("recall", { query: "灯塔 lamps" });
const wrong = await call("recall", { query: 7 });
const forgotten = await call("forget", { id: remembered.doc.id });
const { resources } = await client.listResources();
const { prompts } = await client.listPrompts();
console.log(JSON.stringify({
  server: client.getServerVersion().name,
  tools: tools.map((t) => t.name),
  recalled: recalled.doc.hits.map((h) => h.text),
  text: recalled.text,
  wrong: wrong.error,
  forgotten: forgotten.doc.value,
  resources: resources.length,
  prompts: prompts.length,
}));
await client.close();
