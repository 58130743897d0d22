#!/bin/sh
# Makes Temporal's two databases and brings their schemas to the version of this
# image. It can be repeated, and must run before a newer server does.
set -eu
export SQL_PLUGIN=postgres12 SQL_HOST=postgres SQL_PORT=5432 SQL_USER=temporal
SQL_PASSWORD=$(cat /run/secrets/temporal_password)
export SQL_PASSWORD
for pair in temporal:temporal temporal_visibility:visibility; do
	database=${pair%%:*}
	schemas=/etc/temporal/schema/postgresql/v12/${pair##*:}/versioned
	export SQL_DATABASE="$database"
	temporal-sql-tool setup-schema --version 0.0 # does nothing where there is a later one
	temporal-sql-tool update-schema --schema-dir "$schemas"
done
