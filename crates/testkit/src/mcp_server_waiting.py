"""A server on the Python SDK, with a tool that waits until it is cancelled.

The SDK handles all messages, including cancellations.
"""

import sys

import anyio
from mcp.server.mcpserver import Context, Image, MCPServer

server = MCPServer("waiting")
cancelled = []
is_cancelled = anyio.Event()


@server.tool()
async def wait(ctx: Context) -> str:
    """Waits until it is cancelled."""
    await ctx.report_progress(1, 2)
    try:
        await anyio.sleep_forever()
    except anyio.get_cancelled_exc_class():
        cancelled.append(str(ctx.request_id))
        is_cancelled.set()
        raise
    return "not cancelled"


@server.tool(structured_output=False)
async def cancelled_request() -> str:
    """Waits for a cancelled request and returns its id."""
    await is_cancelled.wait()
    return ",".join(cancelled)


@server.tool(structured_output=False)
async def count(to: int, ctx: Context) -> str:
    """Counts and reports progress."""
    for number in range(to):
        await ctx.report_progress(number + 1, to)
    return f"counted to {to}"


@server.tool(structured_output=False)
async def large(size: int) -> str:
    """Returns a text of this size."""
    return "0123456789abcdef" * (size // 16)


@server.tool(structured_output=False)
async def picture() -> Image:
    """Returns the first bytes of a PNG file."""
    return Image(data=b"\x89PNG\r\n\x1a\n", format="png")


@server.resource("waiting://note", mime_type="text/plain")
def note() -> str:
    """A note."""
    return "to be continued"


if sys.argv[1:] == ["http"]:
    server.run("streamable-http", port=0)
else:
    server.run("stdio")
