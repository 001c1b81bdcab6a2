"""What carried the bytes of a probe: its phases, lanes, counters and sockets."""
