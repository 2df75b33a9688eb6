"""The databases that are asked: connections, catalogue, execution, and the embedded server."""
