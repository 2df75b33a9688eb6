"""WebSockets: the handshake in a view, then one event loop for all, without threads.

It is a part of `api/` and not of `serving/`, because views hand their connections over, and
`serving/` stands above them. Nothing here depends on which WSGI server runs the view.
"""
