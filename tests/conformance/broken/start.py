"""`start.py MODULE FAULT...`: as a module, unlike as a script, it is compiled only once for hundreds of starts."""

import sys
from importlib import import_module

if __name__ == "__main__":
    import_module(sys.argv[1]).main(*sys.argv[2:])
