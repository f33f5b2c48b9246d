"""Applies a model's answer to a workspace: python apply_answer.py HOST:PORT WORKSPACE < answer.md"""
import sys
import uuid
from pathlib import Path

import grpc

sys.path.insert(0, str(Path(__file__).resolve().parent / "stubs"))
from aptix.v1 import batch_pb2, batch_service_pb2 as calls, batch_service_pb2_grpc, document_pb2

server, workspace = sys.argv[1:]
batches = batch_service_pb2_grpc.BatchServiceStub(grpc.insecure_channel(server))
answer = document_pb2.Document(text=sys.stdin.buffer.read())
request = calls.SubmitBatchRequest(workspace_id=workspace, request_id=str(uuid.uuid4()), document=answer)
watched = calls.WatchBatchRequest(workspace_id=workspace, batch_id=batches.SubmitBatch(request).batch.batch_id, view=batch_pb2.BATCH_VIEW_FULL)
*_, last = batches.WatchBatch(watched)
print(last.batch.report.diff, *(failure.message for failure in last.batch.report.failures), sep="\n")
sys.exit(last.batch.state != batch_pb2.BATCH_STATE_APPLIED)
