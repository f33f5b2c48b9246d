// Plays calls that a person is asked about, with the official client library of TypeScript: `node asked.mjs < script.json`
//
// The script has `answers`, one for each question; with `null` the client says that it shows no forms. Prints the answers of the
// calls, and the questions, as JSON.
import { readFileSync } from "node:fs";

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";

const script = JSON.parse(readFileSync(0, "utf8"));
const [command, ...args] = script.command;
const capabilities = script.answers ? { elicitation: { form: {} } } : {};
const client = new Client({ name: "conformance", version: "1" }, { capabilities });
const questions = [];
if (script.answers) {
  client.setRequestHandler(ElicitRequestSchema, ({ params }) => {
    questions.push({ message: params.message, schema: params.requestedSchema });
    return script.answers[questions.length - 1];
  });
}
await client.connect(new StdioClientTransport({ command, args, env: script.env, cwd: script.cwd }));
const calls = [];
for (const step of script.calls) {
  const answer = await client.callTool({ name: step.tool, arguments: step.arguments });
  calls.push({ isError: answer.isError ?? false, structured: answer.structuredContent ?? null });
}
await client.close();
console.log(JSON.stringify({ calls, questions }));
