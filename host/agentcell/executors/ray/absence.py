"""Where Ray, or a cluster of it, is not there: how that is found out, and what is to be done."""

from importlib.util import find_spec

from agentcell.errors import ExecutorError

INSTALL = "pip install 'agentcell[ray]'"
"""Where there is no Ray."""

START = "start one with ray start --head, and give the address of its head, such as 10.0.0.1:6379"
"""Where there is no cluster."""

SEE_LOG = "see what Ray has logged"
"""Where something of Ray's went that was there."""


def check_installed() -> None:
    """Raises ExecutorError where Ray is not installed. It is not imported."""
    if find_spec("ray") is None:
        raise ExecutorError("Ray is not installed here", INSTALL)
