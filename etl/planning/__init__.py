"""A bound intent → layered nodes, each with one SELECT as a tree; the review of a plan."""
