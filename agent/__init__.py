"""The question-answering agent: its flows, their tools and skills, and the runs of questions."""
