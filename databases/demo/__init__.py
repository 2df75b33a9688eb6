"""The demo database: a highway operator's service areas, so that there is something to ask on the
first start.

`schema.sql` is its schema; `network.py` has the companies, areas and shops, `measurements.py` the
daily figures. `loader.py` puts them into a server, and `reader.py` creates the role that may only
read. `semantic.yaml` says what it all means to people.
"""

from pathlib import Path

SEMANTIC_FILE = Path(__file__).with_name("semantic.yaml")
"""The demo's semantic file; docs/semantic.md describes the format."""
