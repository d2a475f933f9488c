"""A server on the SDK for Python, with a tool that waits until it is called off.

What a message means, a cancellation among them, is the SDK's business alone.
"""

import sys

import anyio
from mcp.server.mcpserver import Context, Image, MCPServer

server = MCPServer("waiting")
called_off = []
news = anyio.Event()


@server.tool()
async def wait(ctx: Context) -> str:
    """Waits until it is called off."""
    await ctx.report_progress(1, 2)
    try:
        await anyio.sleep_forever()
    except anyio.get_cancelled_exc_class():
        called_off.append(str(ctx.request_id))
        news.set()
        raise
    return "nobody called it off"


@server.tool(structured_output=False)
async def who_was_called_off() -> str:
    """The request that was called off, as soon as there is one."""
    await news.wait()
    return ",".join(called_off)


@server.tool(structured_output=False)
async def count(to: int, ctx: Context) -> str:
    """Counts, and tells how far it has come."""
    for number in range(to):
        await ctx.report_progress(number + 1, to)
    return f"counted to {to}"


@server.tool(structured_output=False)
async def large(size: int) -> str:
    """As much text as is asked for."""
    return "0123456789abcdef" * (size // 16)


@server.tool(structured_output=False)
async def picture() -> Image:
    """The beginning of a picture, which is as far as anybody looks at it."""
    return Image(data=b"\x89PNG\r\n\x1a\n", format="png")


@server.resource("waiting://note", mime_type="text/plain")
def note() -> str:
    """A note."""
    return "to be continued"


if sys.argv[1:] == ["http"]:
    server.run("streamable-http", port=0)
else:
    server.run("stdio")
