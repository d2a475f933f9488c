"""A stand-in for the released servers, on stdio.

The first word of a command selects the outcome.
"""

import base64
import json
import os
import sys

CWD = os.environ.get("REPORTED_CWD")


def path(params):
    return params["path"].removeprefix("file://")


def send(message):
    print(json.dumps(message), flush=True)


def notify(method, process, seq, **more):
    send({"method": method, "params": {"processId": process, "seq": seq, **more}})


class Rejected(Exception):
    pass


def start(request, params):
    process, word = params["processId"], params["argv"][0]
    if word == "missing":
        raise Rejected(-32603, "No such file or directory (os error 2)")
    send({"id": request, "result": {"processId": process}})
    chunk = base64.b64encode(params["cwd"].encode() + b"\n").decode()
    notify("process/output", process, 1, stream="stdout", chunk=chunk)
    notify("process/exited", process, 2, exitCode=int(word.rstrip("!")), sandboxDenied=False)
    if word.endswith("!"):
        sys.exit()
    notify("process/closed", process, 3)


def metadata(params):
    try:
        found = os.stat(path(params))
    except FileNotFoundError as error:
        raise Rejected(-32004, f"{error.strerror} (os error {error.errno})") from error
    directory = os.path.isdir(path(params))
    return {"isDirectory": directory, "isFile": not directory, "isSymlink": False,
            "size": found.st_size, "createdAtMs": 0, "modifiedAtMs": 0}


def handle(method, params):
    if method == "initialize":
        return {"sessionId": "0f0f0f0f-0f0f-4f0f-8f0f-0f0f0f0f0f0f"}
    if method == "environment/info":
        shell = {"name": "sh", "path": "/bin/sh"}
        return {"shell": shell, "cwd": CWD} if CWD else {"shell": shell}
    if method == "fs/getMetadata":
        return metadata(params)
    if method == "fs/readDirectory":
        names = sorted(os.listdir(path(params)))
        return {"entries": [{"fileName": name, "isDirectory": False, "isFile": True}
                            for name in names]}
    if method == "fs/writeFile":
        with open(path(params), "wb") as file:
            file.write(base64.b64decode(params["dataBase64"]))
        return {}
    raise Rejected(-32601, f"exec-server stub does not implement `{method}` yet")


for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    try:
        if message["method"] == "process/start":
            start(message["id"], message["params"])
        else:
            result = handle(message["method"], message.get("params") or {})
            send({"id": message["id"], "result": result})
    except Rejected as rejected:
        code, text = rejected.args
        send({"id": message["id"], "error": {"code": code, "message": text}})
