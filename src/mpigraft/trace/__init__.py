"""What an application calls of MPI: profile, record, replay.

Takes files that ranks of a traced program wrote; makes values. Reads files alone. Rooms: `profile`,
`record`.
"""
