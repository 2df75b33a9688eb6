"""The question-answering agent: a LangGraph graph, its nodes, and the skills that think for them."""
