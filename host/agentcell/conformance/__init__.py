"""Numbered checks for any program that claims to be a worker or a `serve` host: `agentcell conformance`.

A check judges what was seen in one or more scenes; a scene starts the program with a scripted model, a project and a
home of its own, and says or does something to it. What was seen of a scene is shared by all checks that judge it.
"""
