"""Where attempts at sessions are made: on this machine, or on others."""
