#!/bin/sh
# Run once by the image of PostgreSQL when it makes its data directory (compose.yaml): the role as which Posthorn works, no
# superuser, and the database that it owns. CREATEROLE is for the roles that its migrations create.
set -eu
psql --no-psqlrc --quiet --set ON_ERROR_STOP=1 --set password="$POSTHORN_PASSWORD" --username "${POSTGRES_USER:-postgres}" --dbname postgres <<'SQL'
CREATE ROLE posthorn LOGIN NOSUPERUSER NOINHERIT CREATEROLE PASSWORD :'password';
CREATE DATABASE posthorn OWNER posthorn;
SQL
