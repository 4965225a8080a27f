"""`python -P -m agentcell_worker`: the bare cell."""

import os
import sys

from agentcell_worker.signals import Cancellation

cancellation = Cancellation()
cancellation.install()  # before the import below, which takes long enough to be cancelled in

from agentcell_worker.main import main  # noqa: E402

code = main(cancellation)
if sys.stderr is not None:  # it is when fd 2 was closed
    sys.stderr.flush()
os._exit(code)  # all is written and nothing runs any more: taking the SDK's modules apart costs half a second
