#!/bin/sh
# Runs once, when the cluster is made: a role with its databases for each of the two
# who use it, so that neither can read what the other has.
set -eu
psql -v ON_ERROR_STOP=1 -U "${POSTGRES_USER:-postgres}" -d postgres \
	-v earshot="$(cat /run/secrets/earshot_password)" -v temporal="$(cat /run/secrets/temporal_password)" <<'SQL'
CREATE ROLE earshot LOGIN PASSWORD :'earshot';
CREATE ROLE temporal LOGIN PASSWORD :'temporal';
CREATE DATABASE earshot OWNER earshot;
CREATE DATABASE temporal OWNER temporal;
CREATE DATABASE temporal_visibility OWNER temporal;
REVOKE CONNECT ON DATABASE earshot, temporal, temporal_visibility FROM PUBLIC;
SQL
