// Plays calls on an MCP server with the official client library of TypeScript: `node client.mjs < script.json`
//
// Prints what came of them as JSON. The library holds every answer, also a refusal, to the output schema of its tool, and
// throws if one differs.
import { readFileSync } from "node:fs";

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

const script = JSON.parse(readFileSync(0, "utf8"));
const [command, ...args] = script.command;
const client = new Client({ name: "conformance", version: "1" });
await client.connect(new StdioClientTransport({ command, args, env: script.env, cwd: script.cwd }));

/** Calls a tool; the arguments may name the hunk that was prepared last. */
async function call(step, hunk, options) {
  const given = Object.entries(step.arguments).map(([key, value]) => [key, value === "$hunkId" ? hunk : value]);
  const answer = await client.callTool({ name: step.tool, arguments: Object.fromEntries(given) }, undefined, options);
  const text = answer.content.filter((part) => part.type === "text").map((part) => part.text).join("");
  return { isError: answer.isError ?? false, structured: answer.structuredContent ?? null, text };
}

await client.ping();
const { tools } = await client.listTools();
const calls = [];
let hunk;
for (const step of script.calls) {
  calls.push(await call(step, hunk));
  hunk = calls.at(-1).structured?.hunkId ?? hunk;
}
const signal = AbortSignal.timeout(script.cancelAfterSeconds * 1000);
const cancelled = await call(script.cancelled, undefined, { signal }).then(() => false, () => signal.aborted);
await client.ping();
const together = await Promise.all(Array.from({ length: script.together }, () => call(script.calls[0])));
const unknown = await client.callTool({ name: "no_such_tool", arguments: {} }).then(
  (answer) => String(answer.isError),
  (error) => String(error),
);
const server = client.getServerVersion().name;
await client.close();
const withOutputSchema = tools.filter((tool) => tool.outputSchema).length;
const names = tools.map((tool) => tool.name);
console.log(JSON.stringify({ server, tools: names, calls, cancelled, together: together.length, unknown, withOutputSchema }));
