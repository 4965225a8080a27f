"""`python -P -m agentcell_worker`: the bare cell."""

from agentcell_worker.stop import Stop

stop = Stop()
stop.install()  # before the imports below, which take long enough to be cancelled in

from agentcell_worker.main import main  # noqa: E402

raise SystemExit(main(stop))
