"""Connections to PostgreSQL, for datasources and for the store alike.

connection         one connection, driven by the event loop
pool               a bounded number of them
abandoned_backends counts the backends of closed connections that still run
addresses          looks host names up
cancelling         stops a statement
socket_proxy       counts and bounds what arrives
arrays             reads array literals
connection_errors  what is said when a connection fails
"""
