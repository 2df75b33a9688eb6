"""Tables of the workspace: how rows get there, and how a table takes the place of another."""
