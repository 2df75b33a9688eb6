"""From a request to a tested draft of a transformation: intent, meaning, plan, SQL, evidence.

Packages, from the lowest to the highest:

- `schemas`: what is exchanged with clients and kept in a run's state, as pydantic models.
- `meaning`: the bound intent, and the interpreter that says which rows it means.
- `binding`: an intent and a catalogue → a bound intent, or questions, or what is not possible.
- `clauses`: a sentence → an intent.
- `planning`: a bound intent → layered nodes, each with one SELECT as a tree; the review of a plan.
- `rendering`: the nodes as a dbt project and as plain SQL: the artefact.
- `scratch`: where drafts are built: the database, samples of the sources, builds, dbt.
- `evidence`: tests made for a draft, mutants of its models, the ledger of rows.
- `lineage`: where tables and columns come from, and what depends on them.
- `assets`: layers of tables, how they may be joined, which rules their values keep.

Nothing here asks a model or knows HTTP: `agent.flows.etl` puts it into a flow.
"""
