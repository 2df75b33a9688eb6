"""A second flow: talks, or asks its user twice before it reads a table. What a flow needs is in
this folder.
"""
