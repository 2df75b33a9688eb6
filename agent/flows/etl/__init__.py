"""From a request to a tested draft of a transformation: six roles, each a node of one graph."""
