"""The flow that answers one question with one query: the graph, its nodes and what they share."""
