"""An MCP server that misbehaves in the way its first argument names.

It speaks just enough of the protocol for that, and uses nothing but what comes with Python.
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


def answer(request, result):
    send({"id": request["id"], "result": result})


def refuse(request, code, message):
    send({"id": request["id"], "error": {"code": code, "message": message}})


def text(words, **more):
    return {"content": [{"type": "text", "text": words}], **more}


def call(request):
    name = request["params"]["name"]
    arguments = request["params"].get("arguments", {})
    if name == "die":
        print("last words", file=sys.stderr, flush=True)
        os._exit(arguments.get("code", 7))
    elif name == "hang":
        if mode == "slow-of-hearing":
            time.sleep(0.5)
    elif name == "answers-late":
        late.append(request)
    elif name == "pid":
        answer(request, text(str(os.getpid())))
    elif name == "env":
        answer(request, text(os.environ.get(arguments["name"], "(unset)")))
    elif name == "big":
        answer(request, text("x" * arguments["bytes"]))
    elif name == "flood":
        line = "e" * 1023 + "\n"
        for _ in range(arguments["kilobytes"]):
            sys.stderr.write(line)
        sys.stderr.flush()
        answer(request, text("done"))
    elif name == "babble":
        sys.stdout.write("not a message\r\n\n{broken\n")
        answer(request, text("still here"))
    elif name == "batch":
        message = {"jsonrpc": "2.0", "id": request["id"], "result": text("one of several")}
        sys.stdout.write(json.dumps([{"jsonrpc": "1.0"}, message, 7]) + "\n")
        sys.stdout.flush()
    elif name == "cancelled":
        answer(request, text(",".join(str(i) for i in cancelled)))
    elif name == "leave":
        # No newline behind the last message.
        message = {"jsonrpc": "2.0", "id": request["id"], "result": text("farewell")}
        sys.stdout.write(json.dumps(message))
        sys.stdout.flush()
        os._exit(0)
    elif name == "ask":
        answer(request, {"resultType": "input_required", "inputRequests": {}})
    else:
        refuse(request, -32602, f"unknown tool {name}")


cancelled = []
late = []
if mode == "silent":
    sys.stdin.read()
    sys.exit(0)
if mode == "once":
    # Works the first time and never again.
    if os.path.exists(rest[0]):
        print("not again", file=sys.stderr)
        sys.exit(4)
    open(rest[0], "w").close()

for line in sys.stdin:
    request = json.loads(line)
    method = request.get("method")
    if method == "server/discover":
        if mode == "mute-to-discover":
            continue
        if mode == "dies-of-discover":
            sys.exit(1)
        if mode == "newest-only":
            answer(
                request,
                {
                    "supportedVersions": ["2026-07-28"],
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "odd", "version": "1"},
                    "resultType": "complete",
                    "ttlMs": 0,
                    "cacheScope": "private",
                },
            )
            continue
        refuse(request, -32601, "Method not found")
    elif method == "initialize":
        if mode in ("newest-only", "no-handshake"):
            refuse(request, -32601, "there is no such handshake here")
            continue
        capabilities = {"tools": {}}
        if mode == "no-templates":
            capabilities["resources"] = {}
        answer(
            request,
            {
                "protocolVersion": rest[0] if mode == "revision" else request["params"]["protocolVersion"],
                "capabilities": capabilities,
                "serverInfo": {"name": "odd", "version": "1"},
            },
        )
    elif method == "tools/list":
        schema = {"type": "object"}
        tools = ["pid", "env", "hang"]
        cursor = (request.get("params") or {}).get("cursor")
        if mode == "mute-to-lists":
            continue
        if mode == "endless":
            answer(
                request,
                {
                    "tools": [{"name": f"tool{i}", "inputSchema": schema} for i in range(1000)],
                    "nextCursor": str(int(cursor or 0) + 1),
                },
            )
            continue
        answer(request, {"tools": [{"name": name, "inputSchema": schema} for name in tools]})
    elif method == "tools/call":
        call(request)
    elif method == "notifications/cancelled":
        cancelled.append(request["params"]["requestId"])
        while late:
            answer(late.pop(), text("too late"))
        if mode == "slow-of-hearing":
            open(rest[0], "w").close()
    elif method == "resources/list":
        answer(request, {"resources": [{"uri": "odd://one", "name": "one"}]})
    elif method == "resources/templates/list":
        refuse(request, -32601, "Method not found")
    elif method == "ping":
        answer(request, {})
