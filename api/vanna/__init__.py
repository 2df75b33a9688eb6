"""Vanna's chat protocol over Citu's runs, for `<vanna-chat>` and Vanna's other clients.

    endpoints      the HTTP endpoints
    chat_socket    the WebSocket
    chat_requests  checks what a client has sent: `parse_chat(body, max_chars) -> ChatRequest`
    chat_callers   who has sent it
    chat_service   `ChatService.open(request, caller) -> ChatReply`: settles what answers, or raises
                   the CituError that refuses before anything has begun;
                   `ChatReply.chunks(on_end)` gives the chunks
    chunks         translates the events of a run into chunks, without I/O
    event_parts    says which parts of an answer an event shows
    components     makes one part, as do tables and charts

Each calls only those below it. Chunks are dictionaries of JSON values; `common.envelope.to_json`
writes one as text.
"""
