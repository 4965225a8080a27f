"""A fork server whose cells are stand-in workers, which do what their requests say."""

from agentcell.testing import main
from agentcell_worker.forkserver import serve

if __name__ == "__main__":
    serve(main)
