"""Plays calls that a person is asked about, with the official client library of Python: `python asked.py MODE < script.json`

The script has `answers`, one for each question; with `null` the client says that it shows no forms. Prints the answers of the calls,
and the questions, as JSON.
"""

import json
import sys

import anyio
from mcp import Client, StdioServerParameters
from mcp.types import ElicitResult

SCRIPT = json.load(sys.stdin)
QUESTIONS: list[dict] = []


async def answer(_context: object, question: object) -> ElicitResult:
    """Answers as the script has it."""
    QUESTIONS.append({"message": question.message, "schema": question.requested_schema})
    return ElicitResult(**SCRIPT["answers"][len(QUESTIONS) - 1])


async def main() -> None:
    command, *arguments = SCRIPT["command"]
    server = StdioServerParameters(command=command, args=arguments, env=SCRIPT["env"], cwd=SCRIPT["cwd"])
    calls = []
    callback = None if SCRIPT["answers"] is None else answer
    async with Client(server, mode=sys.argv[1], elicitation_callback=callback) as client:
        for step in SCRIPT["calls"]:
            called = await client.call_tool(step["tool"], step["arguments"])
            calls.append({"isError": bool(called.is_error), "structured": called.structured_content})
    json.dump({"calls": calls, "questions": QUESTIONS}, sys.stdout)


anyio.run(main)
