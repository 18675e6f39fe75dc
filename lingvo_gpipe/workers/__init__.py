"""Worker processes on this machine: starting, watching and measuring them."""
