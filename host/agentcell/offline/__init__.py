'''A scripted Messages API on 127.0.0.1: whole sessions of the real CLI without network, key or cost.

    script = """
    turns:
      - text: I will write it down.
        tools: [{name: Write, input: {file_path: notes.md, content: hello}}]
      - error: {status: 529, headers: {retry-after: 1}}
        times: 2
      - text: Done.
    """

    with offline_model(yaml.safe_load(script)) as endpoint:
        await agentcell.run_session(request, env=endpoint.environment())
        assert endpoint.requests[0].prompt == "..."

`turns` answer every session, each from its beginning; `sessions` has others for the session whose prompt
contains `match`, or that is the `session`-th to ask. Each request takes the next turn, also one that the CLI
sends again after an error or a dropped connection. What the CLI asks beside a conversation takes none.
`times: always` keeps to a turn: the CLI asks up to three times more after an answer that is empty, refused,
cut off by max_tokens, or that stops for a tool it does not call.
'''

from agentcell.offline.endpoint import Endpoint, offline_model, serve_forever
from agentcell.offline.environment import offline_environment
from agentcell.offline.request import ModelRequest
from agentcell.offline.script import Script, ScriptError, load_script

__all__ = [
    "Endpoint",
    "ModelRequest",
    "Script",
    "ScriptError",
    "load_script",
    "offline_environment",
    "offline_model",
    "serve_forever",
]
