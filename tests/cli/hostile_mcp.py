"""An MCP server with escape sequences and bidirectional marks in every text it sends.

The text comes from the environment. A line that is not a message precedes every response. The
name of the called tool selects the outcome.
"""

import json
import os
import sys

TEXT = json.loads(os.environ["HOSTILE"])


def send(message):
    print(TEXT.replace("\n", " "), flush=True)
    print(TEXT, file=sys.stderr, flush=True)
    # Other than the text before it, JSON in ASCII is harmless; these bytes are not escaped.
    print(json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False), flush=True)


def call(request):
    params = request["params"]
    token = params.get("_meta", {}).get("progressToken")
    if token is not None:
        progress = {"progressToken": token, "progress": 1, "total": 2, "message": TEXT}
        send({"method": "notifications/progress", "params": progress})
    if params["name"] == "exit":
        print(TEXT.replace("\n", " "), file=sys.stderr, flush=True)
        os._exit(7)
    if params["name"] == "reject":
        raise ValueError
    content = [
        {"type": "text", "text": TEXT},
        {"type": "resource_link", "uri": TEXT, "name": TEXT},
        {"type": "resource", "resource": {"uri": TEXT, "text": TEXT}},
        {"type": "image", "mimeType": TEXT, "data": "AAAA"},
    ]
    return {"content": content, "isError": params["name"] == "fail"}


def handle(request):
    method = request["method"]
    if method == "initialize" and os.environ.get("MODE") != "reject":
        info = {"name": TEXT, "version": TEXT, "title": TEXT}
        version = request["params"]["protocolVersion"]
        if os.environ.get("MODE") == "version":
            version = TEXT
        return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info,
                "instructions": TEXT}
    if method == "tools/list":
        names = [TEXT, "text", "fail", "reject", "exit"]
        return {"tools": [{"name": name, "description": TEXT, "inputSchema": {"type": "object"}}
                          for name in names]}
    if method == "tools/call":
        return call(request)
    raise ValueError


for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    try:
        send({"id": request["id"], "result": handle(request)})
    except ValueError:
        error = {"code": -32601, "message": TEXT, "data": TEXT}
        send({"id": request["id"], "error": error})
