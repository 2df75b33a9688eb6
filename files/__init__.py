"""Files that people bring: read, shown as drafts, and loaded as tables of a workspace database.

    reading/    what a file holds: encoding, delimiter, header, types, names; knows no database
    loading/    tables of the workspace: built, swapped, compared, dropped
    file_worker reads and loads in a process of its own, which the service bounds and ends
    workspace   whose tables there are, who may ask them, and what is kept of each file

`databases/` only reads; this room is the one that writes people's tables.
"""
