"""One program under the simulated loader, without the host's files and with them."""
