"""An MCP server on stdio with one tool, `look`, that ends neither with its stdin nor by SIGTERM, nor does its child."""

import json
import signal
import subprocess
import sys
from typing import Any

STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); signal.pause()"


def main() -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    child = subprocess.Popen([sys.executable, "-c", STUBBORN], stdout=subprocess.PIPE, start_new_session=True)
    assert child.stdout is not None
    child.stdout.readline()
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message:
            answer = {"jsonrpc": "2.0", "id": message["id"], **answered(message["method"], message.get("params", {}))}
            print(json.dumps(answer), flush=True)
    while True:
        signal.pause()


def answered(method: str, params: dict[str, Any]) -> dict[str, Any]:
    match method:
        case "initialize":
            info = {"name": "stubborn", "version": "1"}
            version = params["protocolVersion"]
            return {"result": {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}}
        case "tools/list":
            tool = {"name": "look", "description": "Looks.", "inputSchema": {"type": "object", "properties": {}}}
            return {"result": {"tools": [tool]}}
        case "tools/call":
            return {"result": {"content": [{"type": "text", "text": "seen"}]}}
        case "ping":
            return {"result": {}}
    return {"error": {"code": -32601, "message": "no such method"}}


if __name__ == "__main__":
    main()
