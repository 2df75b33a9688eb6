"""WebSockets: the handshake in a view, then one event loop for all of them, so that no open socket holds a thread.

It is a part of `api/` and not of `serving/`, because views hand their connections over, and `serving/` stands above
them. Nothing here depends on which WSGI server runs the view.
"""
