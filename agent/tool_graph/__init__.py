"""Questions of several steps by a graph: the model says what it wants next, and the graph forces the order of steps.

| module | what it does |
|---|---|
| `graph_flow` | implements `agent.flow.Flow` |
| `graph`, `routing` | nodes, edges, and the decisions on them |
| `state`, `workbench`, `context` | what is known of one question, and the services for it |
| `virtual_tools` | what the model may ask for in place of running SQL |
| `nodes` | what each step does |
| `faces` | how each step is shown |
"""
