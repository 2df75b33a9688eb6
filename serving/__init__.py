"""How gunicorn serves Citu: its worker, its sockets, and where it may listen."""
