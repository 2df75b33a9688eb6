#!/bin/sh
# Makes the role that Citu asks with, which may only read; run once, when the database is made.
set -eu
psql --set=ON_ERROR_STOP=1 --set=password="$CITU_READER_PASSWORD" \
    --username="$POSTGRES_USER" --dbname="$POSTGRES_DB" <<'SQL'
CREATE ROLE reader LOGIN PASSWORD :'password' NOSUPERUSER NOCREATEDB NOCREATEROLE;
ALTER ROLE reader SET default_transaction_read_only = on;
GRANT USAGE ON SCHEMA public TO reader;
GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader;
ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT ON TABLES TO reader;
SQL
