"""Cancels a tool call with the client of the Python SDK.

    cancel.py MODE LONG SHORT PROGRAM ARGS…

MODE selects the protocol: `legacy` with a handshake, `auto` with the newest revision.
LONG and SHORT are JSON lists of [tool, arguments]. The first call is cancelled at its
first progress notification without a message or with "ready" in it; then the second is
called. Prints a JSON object with the second call's result and progress.
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

            async def cancel(done, total, message):
                if message is None or "ready" in message:
                    scope.cancel()

            tool, arguments = json.loads(long)
            await client.call_tool(tool, arguments, progress_callback=cancel)
        received = []

        async def progress(done, total, message):
            received.append([done, total])

        tool, arguments = json.loads(short)
        result = await client.call_tool(tool, arguments, progress_callback=progress)
        report = {
            "cancelled": scope.cancelled_caught,
            "failed": bool(result.is_error),
            "text": result.content[0].text,
            "progress": received,
        }
    print(json.dumps(report))


asyncio.run(main())
