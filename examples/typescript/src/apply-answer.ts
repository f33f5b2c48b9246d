// Applies a model's answer to a workspace: node dist/apply-answer.js http://HOST:PORT WORKSPACE < answer.md
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { BatchService } from "./gen/aptix/v1/batch_service_pb.js";
import { BatchState, BatchView } from "./gen/aptix/v1/batch_pb.js";

const [baseUrl = "", workspaceId = ""] = process.argv.slice(2);
const batches = createClient(BatchService, createGrpcTransport({ baseUrl }));
const content = { case: "document", value: { text: readFileSync(0) } } as const;
let { batch } = await batches.submitBatch({ workspaceId, requestId: randomUUID(), content });
const watched = { workspaceId, batchId: batch!.batchId, view: BatchView.FULL };
for await (const update of batches.watchBatch(watched)) batch = update.batch;
console.log(batch!.report!.diff + batch!.report!.failures.map((failure) => failure.message).join("\n"));
process.exit(batch!.state === BatchState.APPLIED ? 0 : 1);
