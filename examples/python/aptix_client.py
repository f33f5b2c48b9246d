"""A small client for orchestrators: submit a batch, wait for what became of it, read a workspace's files back, and forward the
tool calls of a model.

`python generate_stubs.py` makes the protocol's code that this module imports. The protocol's own comments, in
`proto/aptix/v1/`, say what every field means.
"""

from __future__ import annotations

import json
import sys
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path

import grpc
from google.rpc import error_details_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_status import rpc_status

sys.path.insert(0, str(Path(__file__).resolve().parent / "stubs"))

from aptix.v1 import batch_pb2, batch_service_pb2, batch_service_pb2_grpc, edit_pb2, file_service_pb2, file_service_pb2_grpc
from aptix.v1 import tool_service_pb2, tool_service_pb2_grpc

ENDED = frozenset({
    batch_pb2.BATCH_STATE_APPLIED,
    batch_pb2.BATCH_STATE_FAILED,
    batch_pb2.BATCH_STATE_REJECTED,
    batch_pb2.BATCH_STATE_CANCELLED,
    batch_pb2.BATCH_STATE_EXPIRED,
    batch_pb2.BATCH_STATE_PARTIAL,
})
"""The states a batch does not leave."""

CALL_SECONDS = 30.0


@dataclass
class Refused(Exception):
    """The server refused a call. Nothing was stored."""

    code: grpc.StatusCode
    message: str
    reason: str = ""
    """The catalogued word, such as INVALID_REQUEST. Empty if the answer carried none."""
    detail: str = ""
    """The finer word."""
    violations: list[tuple[str, str]] = field(default_factory=list)
    """Everything that is wrong with the request: the field, and what is wrong with it."""

    def __str__(self) -> str:
        word = ".".join(part for part in (self.reason, self.detail) if part) or self.code.name
        return "\n".join([f"{word}: {self.message}", *(f"  {where}: {what}" for where, what in self.violations)])


class Client:
    """Speaks with one server about one workspace."""

    def __init__(self, server: str, workspace: str) -> None:
        self.workspace = workspace
        self._channel = grpc.insecure_channel(server)
        self._health = health_pb2_grpc.HealthStub(self._channel)
        self._batches = batch_service_pb2_grpc.BatchServiceStub(self._channel)
        self._files = file_service_pb2_grpc.FileServiceStub(self._channel)
        self._tools = tool_service_pb2_grpc.ToolServiceStub(self._channel)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self._channel.close()

    def is_serving(self, seconds: float = 5.0) -> bool:
        """Whether the server says that it serves, or does so within this time."""
        try:
            answer = self._health.Check(health_pb2.HealthCheckRequest(), timeout=seconds, wait_for_ready=True)
        except grpc.RpcError:
            return False
        return answer.status == health_pb2.HealthCheckResponse.SERVING

    def submit(self, edit: edit_pb2.Edit, request_id: str | None = None) -> batch_pb2.Batch:
        """Stores a batch and returns it with its ids.

        A call whose answer was lost is repeated under the same request id, so the batch is stored once.
        """
        request = batch_service_pb2.SubmitBatchRequest(
            workspace_id=self.workspace, request_id=request_id or str(uuid.uuid4()), edit=edit
        )
        return self._unary(self._batches.SubmitBatch, request).batch

    def wait(self, batch_id: str, seconds: float = 60.0) -> batch_pb2.Batch:
        """Waits until a batch has ended and returns it with its report. Raises TimeoutError if it does not in time."""
        deadline = time.monotonic() + seconds
        request = batch_service_pb2.WatchBatchRequest(
            workspace_id=self.workspace, batch_id=batch_id, view=batch_pb2.BATCH_VIEW_FULL
        )
        while (left := deadline - time.monotonic()) > 0:
            try:
                for answer in self._batches.WatchBatch(request, timeout=left):
                    if answer.batch.state in ENDED:
                        return answer.batch
            except grpc.RpcError as error:
                # A new stream begins with the present state, so nothing is missed in between.
                if error.code() not in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED):
                    raise _refused(error) from error
            time.sleep(min(0.2, max(0.0, deadline - time.monotonic())))
        raise TimeoutError(f"batch {batch_id} has not ended within {seconds} s")

    def read(self, doc_path: str) -> tuple[file_service_pb2.FileState, bytes]:
        """Reads a file: what is known of it, and its bytes."""
        selector = file_service_pb2.FileSelector(doc_path=doc_path)
        request = file_service_pb2.ReadFileRequest(workspace_id=self.workspace, file=selector)
        answer = self._unary(self._files.ReadFile, request).file
        if answer.HasField("content"):
            return answer.file, answer.content
        if answer.file.source == file_service_pb2.SOURCE_CLOUD:
            return answer.file, self._download(answer.file.sha256)
        return answer.file, self._parts(request, answer.file)

    def list_tools(self, shape: str = "MCP", tools: tuple[str, ...] = ("core",), strict: bool = False) -> list[dict]:
        """Lists tools as a provider takes them: `shape` is MCP, OPENAI, ANTHROPIC or GEMINI."""
        request = tool_service_pb2.ListToolsRequest(
            shape=tool_service_pb2.ToolShape.Value(f"TOOL_SHAPE_{shape}"), tools=tools, strict=strict
        )
        answer = self._unary(self._tools.ListTools, request)
        return [json.loads(tool.definition) for tool in answer.tools]

    def call_tool(
        self, tool: str, arguments: bytes | str, session: str = "", request_id: str | None = None
    ) -> tool_service_pb2.CallToolResponse:
        """Carries out what a model said: `arguments` as the model wrote them. `text` of the answer goes back to the model, also
        with `is_error`. Raises Refused where the call cannot be carried out now.

        A call whose answer was lost is repeated under the same request id.
        """
        request = tool_service_pb2.CallToolRequest(
            workspace_id=self.workspace,
            tool=tool,
            arguments=arguments.encode() if isinstance(arguments, str) else arguments,
            origin=batch_pb2.Origin(session_id=session),
            request_id=request_id or str(uuid.uuid4()),
        )
        return self._unary(self._tools.CallTool, request)

    def _parts(self, request: file_service_pb2.ReadFileRequest, file: file_service_pb2.FileState) -> bytes:
        """Reads a file on disk that is too large for one answer. Raises Refused (FILE_CHANGED) if it changes meanwhile."""
        content = b""
        while len(content) < file.size_bytes:
            request.range.bytes.offset = len(content)
            part = self._unary(self._files.ReadFile, request).file
            if part.file.sha256 != file.sha256 or not part.content:
                raise Refused(grpc.StatusCode.FAILED_PRECONDITION, "the file changed while it was read", "FILE_CHANGED")
            content += part.content
        return content

    def _download(self, sha256: str) -> bytes:
        request = file_service_pb2.DownloadBlobRequest(workspace_id=self.workspace, sha256=sha256)
        try:
            return b"".join(part.chunk for part in self._files.DownloadBlob(request, timeout=10 * CALL_SECONDS))
        except grpc.RpcError as error:
            raise _refused(error) from error

    def _unary(self, call, request):
        """Calls, and calls again where the server was out of reach: every call made here may be repeated."""
        for pause in (0.2, 1.0, None):
            try:
                return call(request, timeout=CALL_SECONDS)
            except grpc.RpcError as error:
                if error.code() != grpc.StatusCode.UNAVAILABLE or pause is None:
                    raise _refused(error) from error
                time.sleep(pause)


def _refused(error: grpc.RpcError) -> Refused:
    """Reads the structured details that a refusal carries."""
    refused = Refused(error.code(), error.details() or "")
    status = rpc_status.from_call(error)
    for detail in status.details if status else ():
        info, bad = error_details_pb2.ErrorInfo(), error_details_pb2.BadRequest()
        if detail.Unpack(info):
            refused.reason, refused.detail = info.reason, info.metadata.get("detail", "")
        elif detail.Unpack(bad):
            refused.violations = [(found.field, found.description) for found in bad.field_violations]
    return refused
