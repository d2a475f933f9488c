"""Calls tools with the client of the Python SDK.

    client.py MODE CALLS PROGRAM ARGS…

MODE selects the protocol: `legacy` with a handshake, `auto` with the newest revision.
CALLS is a JSON list of [tool, arguments]; an argument "@N.member" stands for a member
of the Nth result. Prints a JSON object with the revision, the tools and the results.
"""

import asyncio
import json
import os
import sys

from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client


def fill_in(arguments, results):
    def fill(value):
        if isinstance(value, str) and value.startswith("@"):
            number, member = value[1:].split(".")
            return results[int(number)]["structured"][member]
        return value

    return {name: fill(value) for name, value in arguments.items()}


async def main():
    mode, calls, program, *args = sys.argv[1:]
    server = StdioServerParameters(command=program, args=args, env=dict(os.environ))
    results = []
    async with Client(stdio_client(server), mode=mode) as client:
        tools = await client.list_tools()
        for tool, arguments in json.loads(calls):
            received = []

            async def progress(done, total, message):
                received.append([done, total, message])
                # For a command that waits until its progress was received.
                open("progressed", "w").close()

            result = await client.call_tool(
                tool, fill_in(arguments, results), progress_callback=progress
            )
            results.append(
                {
                    "failed": bool(result.is_error),
                    "structured": result.structured_content,
                    "text": result.content[0].text,
                    "progress": received,
                }
            )
        report = {
            "revision": client.protocol_version,
            "tools": [tool.name for tool in tools.tools],
            "results": results,
        }
    print(json.dumps(report))


asyncio.run(main())
