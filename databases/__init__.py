"""The asked databases: guard, connection, catalogue, and the embedded server with its demo data.

`Datasources.open` is the only way to one, and what it returns runs nothing that the guard has not proven.
"""

from databases.datasources import DEFAULT, Datasource, Datasources
from databases.guard import AccessRuleError
from databases.guarded import GuardedDatabase
from databases.options import DatabaseOptions

__all__ = ["DEFAULT", "AccessRuleError", "DatabaseOptions", "Datasource", "Datasources", "GuardedDatabase"]
