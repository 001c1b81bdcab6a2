"""The world that ran: ranks, hosts, mapped libraries, bindings, from the witness's records."""
