// Edits a file on a developer's machine: node dist/edit-live-file.js http://HOST:PORT WORKSPACE PATH
//
// Reads the file as it is, has its first line marked, and then sends a patch of the version that was read: it is refused,
// because the file has changed since. The refusal carries the patch corrected, which is sent back as it came.
import { randomUUID } from "node:crypto";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { type Batch, BatchState, BatchView } from "./gen/aptix/v1/batch_pb.js";
import { BatchService } from "./gen/aptix/v1/batch_service_pb.js";
import type { Document } from "./gen/aptix/v1/document_pb.js";
import { FileService } from "./gen/aptix/v1/file_service_pb.js";
import { Source } from "./gen/aptix/v1/source_pb.js";

const [baseUrl = "", workspaceId = "", path = ""] = process.argv.slice(2);
const transport = createGrpcTransport({ baseUrl });
const batches = createClient(BatchService, transport);
const files = createClient(FileService, transport);

/** Submits a document and waits until its batch has ended. */
async function carryOut(document: Pick<Document, "dialect" | "text">): Promise<Batch> {
  const content = { case: "document", value: document } as const;
  let { batch } = await batches.submitBatch({ workspaceId, requestId: randomUUID(), content });
  const watched = { workspaceId, batchId: batch!.batchId, view: BatchView.FULL };
  for await (const update of batches.watchBatch(watched, { timeoutMs: 60_000 })) batch = update.batch;
  console.log(BatchState[batch!.state], batch!.report?.failures[0]?.message ?? "");
  return batch!;
}

const selector = { file: { case: "path", value: path } } as const;
const read = (await files.readFile({ workspaceId, file: selector, source: Source.ACTIVE })).file!;
const { docPath, sha256 } = read.file!;
const lines = new TextDecoder().decode(read.content).split(/\r?\n/);

/** A line patch of the version that was read: it marks one line. */
function marked(line: number, mark: string): Pick<Document, "dialect" | "text"> {
  const old = lines[line - 1]!;
  const change = { operation: "replace", startLine: line, endLine: line, expectedOriginalLines: [old] };
  const changes = [{ ...change, newLines: [`${old} ${mark}`] }];
  const patch = { files: [{ docPath, originalSha256: sha256, changes }] };
  return { dialect: "line-patch", text: new TextEncoder().encode(JSON.stringify(patch)) };
}

await carryOut(marked(1, "(first)"));
const refused = await carryOut(marked(2, "(second)"));
const correction = refused.report!.failures[0]!.nextAction!;
const applied = await carryOut(correction);
console.log(applied.report!.diff);
