"""An MCP server that misbehaves as its first argument says.

Implements just enough of the protocol, with the Python standard library only.
"""

import json
import os
import sys
import time

mode = sys.argv[1] if len(sys.argv) > 1 else ""
rest = sys.argv[2:]


def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def respond(request, result):
    send({"id": request["id"], "result": result})


def reject(request, code, message):
    send({"id": request["id"], "error": {"code": code, "message": message}})


def text(content):
    return {"content": [{"type": "text", "text": content}]}


def call(request):
    name = request["params"]["name"]
    arguments = request["params"].get("arguments", {})
    if name == "die":
        print("last line", file=sys.stderr, flush=True)
        os._exit(arguments.get("code", 7))
    elif name == "hang":
        if mode == "slow-reader":
            time.sleep(0.5)
    elif name == "responds-late":
        late.append(request)
    elif name == "pid":
        respond(request, text(str(os.getpid())))
    elif name == "env":
        respond(request, text(os.environ.get(arguments["name"], "(unset)")))
    elif name == "big":
        respond(request, text("x" * arguments["bytes"]))
    elif name == "flood":
        line = "e" * 1023 + "\n"
        for _ in range(arguments["kilobytes"]):
            sys.stderr.write(line)
        sys.stderr.flush()
        respond(request, text("done"))
    elif name == "garbage":
        batch = [{"jsonrpc": "2.0", "id": request["id"], "result": text("in a batch")}]
        sys.stdout.write("not a message\r\n\n{broken\n" + json.dumps(batch) + "\n")
        respond(request, text("still here"))
    elif name == "cancelled":
        respond(request, text(",".join(str(i) for i in cancelled)))
    elif name == "exit":
        # No newline after the last message.
        message = {"jsonrpc": "2.0", "id": request["id"], "result": text("last message")}
        sys.stdout.write(json.dumps(message))
        sys.stdout.flush()
        os._exit(0)
    else:
        reject(request, -32602, f"unknown tool {name}")


cancelled = []
late = []
if mode == "silent":
    sys.stdin.read()
    sys.exit(0)
if mode == "once":
    # Works only the first time.
    if os.path.exists(rest[0]):
        print("not again", file=sys.stderr)
        sys.exit(4)
    open(rest[0], "w").close()

for line in sys.stdin:
    request = json.loads(line)
    method = request.get("method")
    if method == "server/discover":
        if mode == "ignores-discover":
            continue
        if mode == "exits-on-discover":
            sys.exit(1)
        if mode == "newest-only":
            respond(
                request,
                {
                    "supportedVersions": ["2026-07-28"],
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "misbehaving", "version": "1"},
                    "resultType": "complete",
                    "ttlMs": 0,
                    "cacheScope": "private",
                },
            )
            continue
        reject(request, -32601, "Method not found")
    elif method == "initialize":
        if mode in ("newest-only", "no-handshake"):
            reject(request, -32601, "initialize is not supported")
            continue
        capabilities = {"tools": {}}
        if mode == "no-templates":
            capabilities["resources"] = {}
        respond(
            request,
            {
                "protocolVersion": rest[0] if mode == "revision" else request["params"]["protocolVersion"],
                "capabilities": capabilities,
                "serverInfo": {"name": "misbehaving", "version": "1"},
            },
        )
    elif method == "tools/list":
        schema = {"type": "object"}
        tools = ["pid", "env", "hang"]
        cursor = (request.get("params") or {}).get("cursor")
        if mode == "ignores-lists":
            continue
        if mode == "endless":
            respond(
                request,
                {
                    "tools": [{"name": f"tool{i}", "inputSchema": schema} for i in range(1000)],
                    "nextCursor": str(int(cursor or 0) + 1),
                },
            )
            continue
        respond(request, {"tools": [{"name": name, "inputSchema": schema} for name in tools]})
    elif method == "tools/call":
        call(request)
    elif method == "notifications/cancelled":
        cancelled.append(request["params"]["requestId"])
        while late:
            respond(late.pop(), text("too late"))
        if mode == "slow-reader":
            open(rest[0], "w").close()
    elif method == "resources/list":
        respond(request, {"resources": [{"uri": "misbehaving://one", "name": "one"}]})
    elif method == "resources/templates/list":
        reject(request, -32601, "Method not found")
    elif method == "ping":
        respond(request, {})
