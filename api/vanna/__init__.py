"""Vanna's chat protocol over Citu's runs: its web component `<vanna-chat>` and its other clients ask Citu.

    chat_requests  what a client has sent: `parse_chat(body, max_chars) -> ChatRequest`
    speakers       who has sent it: `speakers_of_request(count)`, in the view that admits a request or a connection
    talk           `Talk.open(request, speaker) -> Reply`: begins or joins the run, or raises the CituError that refuses
                   it before anything has begun; `Reply.chunks(on_end)` is what the client gets, chunk by chunk
    chunks         the translation of events into chunks, pure
    endpoints      the HTTP endpoints over it

Chunks are dictionaries of JSON values; `common.envelope.to_json` writes one as text.
"""
