"""The five steps of the graph, one file each."""
