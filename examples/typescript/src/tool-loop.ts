// Gives a model the tools of a workspace: node dist/tool-loop.js http://HOST:PORT WORKSPACE PATH
//
// The model is a script in the shapes of Messages: put a call of your provider in place of `model`. It reads a file, has its
// first line marked, and then patches the version that it read. That is refused, because the file has changed since; the
// refusal names the call to make instead, and the model makes it.
import { randomUUID } from "node:crypto";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { type CallToolResponse, ToolService, ToolShape } from "./gen/aptix/v1/tool_service_pb.js";

type Use = { type: "tool_use"; id: string; name: string; input: object };
type Text = { type: "text"; text: string };
/** The structured answer of a tool, as far as this script reads it. */
type Structured = {
  successful?: boolean;
  docPath?: string;
  sha256?: string;
  text?: string;
  errors?: { code: string; detail: string | null; nextAction?: { tool: string; arguments: object } | null }[];
  result?: { diff: string } | null;
};

const [baseUrl = "", workspaceId = "", path = ""] = process.argv.slice(2);
const service = createClient(ToolService, createGrpcTransport({ baseUrl }));
const origin = { sessionId: randomUUID() };

/** Forwards a call as the model wrote it. While its batch waits, the same call goes on waiting. */
async function carryOut(use: Use): Promise<CallToolResponse> {
  const given = new TextEncoder().encode(JSON.stringify(use.input));
  const request = { workspaceId, tool: use.name, arguments: given, origin, requestId: randomUUID() };
  for (;;) {
    const answer = await service.callTool(request, { timeoutMs: 60_000 });
    const error = (JSON.parse(answer.structured) as Structured).errors?.[0];
    console.log(use.name, answer.isError ? "was refused" : "was done", error?.code ?? "");
    if (error?.detail !== "PENDING") return answer;
  }
}

/** What a provider answers to what the tools answered so far: a call, or a text at the end. */
function model(heard: Structured[]): Use | Text {
  const [read, , ...later] = heard;
  if (!read) return use("read_file", { path });
  const [first = "", second = ""] = read.text?.split("\n") ?? [];
  if (heard.length === 1) {
    return use("edit", { file_path: path, old_string: first, new_string: `${first} (first)` });
  }
  const last = later.at(-1);
  if (!last) {
    const place = { startLine: 2, endLine: 2, expectedOriginalLines: [second] };
    const changes = [{ operation: "replace", ...place, newLines: [`${second} (second)`] }];
    return use("workspace_write_patch", { files: [{ docPath: read.docPath, originalSha256: read.sha256, changes }] });
  }
  const action = last.errors?.[0]?.nextAction;
  return action ? use(action.tool, action.arguments) : { type: "text", text: "I marked both lines." };
}

function use(name: string, input: object): Use {
  return { type: "tool_use", id: randomUUID(), name, input };
}

const listed = await service.listTools({ shape: ToolShape.ANTHROPIC, tools: ["core"] });
// What a provider is given beside the messages.
const tools = listed.tools.map((tool) => JSON.parse(tool.definition) as { name: string });
console.log(`${tools.length} tools: ${tools.map((tool) => tool.name).join(", ")}`);
const messages: object[] = [{ role: "user", content: `Mark the first two lines of ${path}.` }];
const heard: Structured[] = [];
for (let said = model(heard); ; said = model(heard)) {
  messages.push({ role: "assistant", content: [said] });
  if (said.type === "text") {
    console.log(said.text);
    break;
  }
  const answer = await carryOut(said);
  const content = answer.text.map((text) => ({ type: "text", text }));
  messages.push({ role: "user", content: [{ type: "tool_result", tool_use_id: said.id, content, is_error: answer.isError }] });
  heard.push(JSON.parse(answer.structured) as Structured);
}
console.log(heard.at(-1)?.result?.diff);
