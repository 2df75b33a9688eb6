"""Binds an intent to a catalogue, or says what is open and what is not possible.

`intent_binding` is the entry. It goes through the sources (`source_tables`), the joins
(`join_binding`), then the operations one after the other (`step_binding` and the modules of their
kinds), and last the target (`target_binding`). What is asked, assumed and refused on the way is
collected by `binding_findings`; nothing that gives another table is guessed.
"""
