"""The service: sockets, time, threads and a disk around one broker.

    settings    what `stentor serve` can be told, from TOML, with every mistake at once
    outbox      what clients are to be given, by sequence, in the broker's own transactions
    core        broker and outbox: records in, answers and deliveries out; no threads, no sockets
    owner       the thread that owns the core: batches, one commit, then answers
    recent      the last events, in memory
    questions   what would match, why, why not; pages of what there is
    hub         who is to be told what was committed, in the loop
    auth        keys, tokens, tickets; `rates` what an owner may ask for in a second
    requests    what a request says; `refusals` what is refused, and how that is said
    handlers    the HTTP calls; `streams` deliveries over HTTP; `sockets` WebSocket
    openapi     the document of it all; `metrics` what Prometheus is told
    app         routes, and the door that everything comes through
    run         `stentor serve`
    console/    the page to watch it on; `pages` one file of it that needs no server
    past        `stentor console`: a pipeline's tables on the same map

Nothing but this and `cli` imports Starlette, uvicorn or PyJWT.
"""
