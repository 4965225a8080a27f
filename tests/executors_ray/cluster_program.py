"""A Ray cluster of some nodes on this machine, as a process of its own: `python cluster_program.py NODES CPUS`.

It says what there is, one JSON object a line, once at first and after each line on its stdin: `add` adds a node, `add
PATH` one whose Python looks there first, `reap PID` waits for the end of a raylet. At the end of its stdin it ends the
cluster. The temporary directory is RAY_TMPDIR.
"""

import json
import os
import sys
from typing import Any

from ray.cluster_utils import Cluster

LOOPBACK = "127.0.0.1"


def main() -> None:
    """Bring the cluster up, and serve until stdin ends."""
    count, cpus = map(int, sys.argv[1:])
    wire = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # Ray prints
    settings: dict[str, Any] = {
        "num_cpus": cpus,
        "node_ip_address": LOOPBACK,
        "include_dashboard": False,
        "object_store_memory": 2**27,
    }
    cluster: Any = Cluster(initialize_head=True, head_node_args=settings)
    try:
        nodes = [cluster.head_node, *(cluster.add_node(**settings) for _ in range(count - 1))]
        say(wire, cluster, nodes)
        for line in sys.stdin:
            word, *rest = line.split()
            if word == "add":
                nodes.append(cluster.add_node(**settings, env_vars={"PYTHONPATH": "".join(rest)}))
            for node in nodes:
                raylet = node.all_processes["raylet"][0].process
                if rest == [str(raylet.pid)]:
                    raylet.wait()  # one that is not reaped counts as alive
            say(wire, cluster, nodes)
    finally:
        cluster.shutdown()


def say(wire: Any, cluster: Any, nodes: list[Any]) -> None:
    """What there is: of each node its id and the pid of its raylet."""
    raylets = [node.all_processes["raylet"][0].process.pid for node in nodes]
    told = [
        {"id": node.unique_id, "node": node.node_id, "raylet": pid} for node, pid in zip(nodes, raylets, strict=True)
    ]
    print(json.dumps({"address": cluster.address, "nodes": told}), file=wire)


if __name__ == "__main__":
    main()
