"""Edits a file on a developer's machine: python edit_live_file.py HOST:PORT WORKSPACE PATH

Reads the file as it is, has its first line marked, and then sends a patch of the version that was read: it is refused,
because the file has changed since. The refusal carries the patch corrected, which is sent back as it came.
"""

import json
import sys
import uuid
from pathlib import Path

import grpc

sys.path.insert(0, str(Path(__file__).resolve().parent / "stubs"))

from aptix.v1 import batch_pb2, batch_service_pb2, batch_service_pb2_grpc
from aptix.v1 import document_pb2, file_service_pb2, file_service_pb2_grpc, source_pb2

server, workspace, path = sys.argv[1:]
channel = grpc.insecure_channel(server)
batches = batch_service_pb2_grpc.BatchServiceStub(channel)
files = file_service_pb2_grpc.FileServiceStub(channel)


def carry_out(document: document_pb2.Document) -> batch_pb2.Batch:
    """Submits a document and waits until its batch has ended."""
    request = batch_service_pb2.SubmitBatchRequest(
        workspace_id=workspace, request_id=str(uuid.uuid4()), document=document
    )
    batch = batches.SubmitBatch(request).batch
    watched = batch_service_pb2.WatchBatchRequest(
        workspace_id=workspace, batch_id=batch.batch_id, view=batch_pb2.BATCH_VIEW_FULL
    )
    for update in batches.WatchBatch(watched, timeout=60):
        batch = update.batch
    print(batch_pb2.BatchState.Name(batch.state), *(failure.message for failure in batch.report.failures))
    return batch


selector = file_service_pb2.FileSelector(path=path)
asked = file_service_pb2.ReadFileRequest(workspace_id=workspace, file=selector, source=source_pb2.SOURCE_ACTIVE)
read = files.ReadFile(asked).file
lines = read.content.decode().splitlines()


def marked(line: int, mark: str) -> document_pb2.Document:
    """A line patch of the version that was read: it marks one line."""
    old = lines[line - 1]
    change = {"operation": "replace", "startLine": line, "endLine": line, "expectedOriginalLines": [old]}
    change["newLines"] = [f"{old} {mark}"]
    patch = {"files": [{"docPath": read.file.doc_path, "originalSha256": read.file.sha256, "changes": [change]}]}
    return document_pb2.Document(dialect="line-patch", text=json.dumps(patch).encode())


carry_out(marked(1, "(first)"))
refused = carry_out(marked(2, "(second)"))
applied = carry_out(refused.report.failures[0].next_action)
print(applied.report.diff)
