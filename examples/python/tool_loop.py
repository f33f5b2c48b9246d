"""Gives a model the tools of a workspace: python tool_loop.py HOST:PORT WORKSPACE PATH

The model is a script in the shapes of Chat Completions: put a call of your provider in place of `model`. It reads a file, has
its first line marked, and then patches the version that it read. That is refused, because the file has changed since; the
refusal names the call to make instead, and the model makes it.
"""

import json
import sys
import uuid
from pathlib import Path

import grpc

sys.path.insert(0, str(Path(__file__).resolve().parent / "stubs"))

from aptix.v1 import batch_pb2, tool_service_pb2 as api, tool_service_pb2_grpc

server, workspace, path = sys.argv[1:]
service = tool_service_pb2_grpc.ToolServiceStub(grpc.insecure_channel(server))
session = batch_pb2.Origin(session_id=str(uuid.uuid4()))


def carry_out(tool: str, arguments: str) -> api.CallToolResponse:
    """Forwards a call as the model wrote it. While its batch waits, the same call goes on waiting."""
    request = api.CallToolRequest(workspace_id=workspace, tool=tool, arguments=arguments.encode(), origin=session)
    request.request_id = str(uuid.uuid4())
    while True:
        answer = service.CallTool(request, timeout=60)
        errors = json.loads(answer.structured).get("errors") or [{}]
        print(tool, "was refused" if answer.is_error else "was done", errors[0].get("code", ""))
        if errors[0].get("detail") != "PENDING":
            return answer


def model(messages: list[dict]) -> dict:
    """What a provider answers to these messages: a call of a tool, or a text at the end."""
    heard = [json.JSONDecoder().raw_decode(message["content"])[0] for message in messages if message["role"] == "tool"]
    if not heard:
        return call("read_file", {"path": path})
    lines = messages[2]["content"].split("\n", 1)[1].splitlines()
    if len(heard) == 1:
        return call("edit", {"file_path": path, "old_string": lines[0], "new_string": f"{lines[0]} (first)"})
    if len(heard) == 2:
        new = {"operation": "replace", "startLine": 2, "endLine": 2, "newLines": [f"{lines[1]} (second)"]}
        change = {**new, "expectedOriginalLines": [lines[1]]}
        file = {"docPath": heard[0]["docPath"], "originalSha256": heard[0]["sha256"], "changes": [change]}
        return call("workspace_write_patch", {"files": [file]})
    if not heard[-1]["successful"]:
        action = heard[-1]["errors"][0]["nextAction"]
        return call(action["tool"], action["arguments"])
    return {"role": "assistant", "content": "I marked both lines."}


def call(tool: str, arguments: dict) -> dict:
    """An answer of a model that calls a tool: the arguments are a text."""
    function = {"name": tool, "arguments": json.dumps(arguments)}
    return {"role": "assistant", "tool_calls": [{"id": tool, "type": "function", "function": function}]}


listed = service.ListTools(api.ListToolsRequest(shape=api.TOOL_SHAPE_OPENAI, tools=["core"]), timeout=30)
# What a provider is given beside the messages.
tools = [json.loads(tool.definition) for tool in listed.tools]
print(len(tools), "tools:", ", ".join(tool["function"]["name"] for tool in tools))
messages = [{"role": "user", "content": f"Mark the first two lines of {path}."}]
structured = {}
while calls := (said := model(messages)).get("tool_calls"):
    messages.append(said)
    for called in calls:
        answer = carry_out(called["function"]["name"], called["function"]["arguments"])
        structured = json.loads(answer.structured)
        messages.append({"role": "tool", "tool_call_id": called["id"], "content": "\n".join(answer.text)})
print(said["content"], structured["result"]["diff"], sep="\n")
