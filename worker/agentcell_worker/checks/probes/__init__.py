"""Programs that a flow has run by the project's own interpreter, which need not have anything of ours.

Each stands alone and takes a directory first, where it leaves `report.json`, then its other arguments.
"""
