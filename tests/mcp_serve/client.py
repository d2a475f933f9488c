"""A client we didn't write, told what to call.

    client.py MODE CALLS PROGRAM ARGS…

MODE is how it begins: `legacy` with a handshake, `auto` in the newest way. CALLS is
a JSON list of [tool, arguments]; an argument "@N.member" is a member of the Nth
answer. Printed is a JSON object: the revision, the tools, and for each call what it
has answered.
"""

import asyncio
import json
import os
import sys

from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client


def filled(arguments, answers):
    def fill(value):
        if isinstance(value, str) and value.startswith("@"):
            number, member = value[1:].split(".")
            return answers[int(number)]["members"][member]
        return value

    return {name: fill(value) for name, value in arguments.items()}


async def main():
    mode, calls, program, *args = sys.argv[1:]
    server = StdioServerParameters(command=program, args=args, env=dict(os.environ))
    answers = []
    async with Client(stdio_client(server), mode=mode) as client:
        tools = await client.list_tools()
        for tool, arguments in json.loads(calls):
            heard = []

            async def progress(done, total, message):
                heard.append([done, total, message])
                # For a command that waits until it was heard of.
                open("heard", "w").close()

            result = await client.call_tool(
                tool, filled(arguments, answers), progress_callback=progress
            )
            answers.append(
                {
                    "failed": bool(result.is_error),
                    "members": result.structured_content,
                    "words": result.content[0].text,
                    "progress": heard,
                }
            )
        said = {
            "revision": client.protocol_version,
            "tools": [tool.name for tool in tools.tools],
            "answers": answers,
        }
    print(json.dumps(said))


asyncio.run(main())
