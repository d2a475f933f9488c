"""A client we didn't write, which calls something off.

    cancel.py MODE LONG SHORT PROGRAM ARGS…

MODE is how it begins: `legacy` with a handshake, `auto` in the newest way. LONG and
SHORT are JSON lists of [tool, arguments]: the first is called off as soon as it tells
of its progress, with "ready" if it says anything, and then the second is called. Printed is a JSON object with what the
second has answered and told on the way.
"""

import asyncio
import json
import os
import sys

import anyio
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client


async def main():
    mode, long, short, program, *args = sys.argv[1:]
    server = StdioServerParameters(command=program, args=args, env=dict(os.environ))
    async with Client(stdio_client(server), mode=mode) as client:
        with anyio.CancelScope() as scope:

            async def enough(done, total, message):
                if message is None or "ready" in message:
                    scope.cancel()

            tool, arguments = json.loads(long)
            await client.call_tool(tool, arguments, progress_callback=enough)
        heard = []

        async def progress(done, total, message):
            heard.append([done, total])

        tool, arguments = json.loads(short)
        result = await client.call_tool(tool, arguments, progress_callback=progress)
        said = {
            "called_off": scope.cancelled_caught,
            "failed": bool(result.is_error),
            "words": result.content[0].text,
            "progress": heard,
        }
    print(json.dumps(said))


asyncio.run(main())
