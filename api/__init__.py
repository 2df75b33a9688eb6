"""HTTP: one blueprint per resource, each thin: parse, call the agent, reply."""
