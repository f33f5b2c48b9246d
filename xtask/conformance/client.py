"""Plays calls on an MCP server with the official client library of Python: `python client.py MODE < script.json`

The mode `legacy` begins with `initialize`; `auto` asks for the newest version of the protocol first, which has no ping.
Prints what came of them as JSON. The library holds every answer to the output schema of its tool, and raises if one differs.
"""

import json
import sys

import anyio
from mcp import Client, StdioServerParameters

MODE = sys.argv[1]
SCRIPT = json.load(sys.stdin)


async def call(client: Client, step: dict, hunk: str | None) -> dict:
    """Calls a tool; the arguments may name the hunk that was prepared last."""
    arguments = {key: hunk if value == "$hunkId" else value for key, value in step["arguments"].items()}
    answer = await client.call_tool(step["tool"], arguments)
    if answer.is_error:
        # The library leaves refusals out.
        await client.session.validate_tool_result(step["tool"], answer)
    text = "".join(part.text for part in answer.content if part.type == "text")
    return {"isError": bool(answer.is_error), "structured": answer.structured_content, "text": text}


async def ping(client: Client) -> None:
    if MODE == "legacy":
        await client.send_ping()
    else:
        await client.list_tools()


async def main() -> None:
    command, *arguments = SCRIPT["command"]
    server = StdioServerParameters(command=command, args=arguments, env=SCRIPT["env"], cwd=SCRIPT["cwd"])
    async with Client(server, mode=MODE) as client:
        await ping(client)
        tools = (await client.list_tools()).tools
        calls, hunk = [], None
        for step in SCRIPT["calls"]:
            calls.append(await call(client, step, hunk))
            hunk = (calls[-1]["structured"] or {}).get("hunkId", hunk)
        with anyio.move_on_after(SCRIPT["cancelAfterSeconds"]) as scope:
            await call(client, SCRIPT["cancelled"], None)
        await ping(client)
        together: list[dict] = []

        async def one() -> None:
            together.append(await call(client, SCRIPT["calls"][0], None))

        async with anyio.create_task_group() as group:
            for _ in range(SCRIPT["together"]):
                group.start_soon(one)
        try:
            unknown = str((await client.call_tool("no_such_tool", {})).is_error)
        except Exception as error:
            unknown = str(error)
        server, version = client.server_info.name, client.protocol_version
    result = {"server": server, "version": version, "tools": [tool.name for tool in tools], "calls": calls}
    result |= {"cancelled": scope.cancelled_caught, "together": len(together), "unknown": unknown}
    result["withOutputSchema"] = sum(tool.output_schema is not None for tool in tools)
    json.dump(result, sys.stdout)


anyio.run(main)
