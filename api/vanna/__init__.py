"""Vanna's chat protocol over Citu's runs, for `<vanna-chat>` and Vanna's other clients.

    chat_requests  what a client has sent: `parse_chat(body, max_chars) -> ChatRequest`
    speakers       who has sent it
    talk           `Talk.open(request, speaker) -> Reply`: begins or joins the run, or raises the
                   CituError that refuses
                   it before anything has begun; `Reply.chunks(on_end)` is what the client gets,
                   chunk by chunk
    chunks         the translation of events into chunks, pure; its parts are made in components,
                   tables and charts
    endpoints      the HTTP endpoints
    chat_socket    the WebSocket

Chunks are dictionaries of JSON values; `common.envelope.to_json` writes one as text.
"""
