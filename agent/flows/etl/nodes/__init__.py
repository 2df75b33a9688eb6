"""The nodes of the graph, one file each; only `clarify` and `feedback_handler` ask the user."""
