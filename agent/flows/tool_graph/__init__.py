"""Questions of several steps: the model asks for the next step, a graph forces the order.

| module | what it does |
|---|---|
| `graph_flow` | implements `agent.flows.flow.Flow` |
| `graph`, `routing` | nodes, edges, and the decisions on them |
| `state`, `scratchpad`, `context` | what is known of one question, and its services |
| `virtual_tools` | what the model may ask for in place of running SQL |
| `nodes` | the steps |
| `labels` | how each step is shown |
"""
