"""Links between brokers: what one sends another is kept until the other has kept it.

    tree       who is linked with whom, as all brokers are told; a ring is refused
    store      what waits for neighbours, what they were announced, and what came, in one file
    frames     what travels: MessagePack, checked and bounded
    book       the broker's side: what is put, received and acknowledged, in its transactions
    session    one connection: greeting, resuming, credits; without sockets
    transport  sockets around it: who dials, who is let in

    commit ─▶ rows, numbered ─▶ batch ─▶ neighbour: receive, one commit ─▶ ack ─▶ rows go

A link is a queue on disk in each direction. To a broker it is never down: what is sent while the
connection is cut waits, in order, and comes once. Only where both sides do not know the same epoch,
or not the same sequences, they greet anew, and say what differs.
"""
