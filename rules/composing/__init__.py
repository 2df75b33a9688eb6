"""Puts the parts of a question together to one query: which table answers, and the place of
everything else.
"""
