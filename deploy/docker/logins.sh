#!/bin/sh
# Login roles for docker-compose.yml, run once by the postgres image after bootstrap.sql. The passwords come from
# the container's environment by psql's \getenv, so that they show in no command line.
set -eu
psql --no-psqlrc --quiet --set=ON_ERROR_STOP=1 --username=postgres --dbname=postgres <<'SQL'
\getenv owner TELLONCE_OWNER_PASSWORD
\getenv consumer TELLONCE_CONSUMER_PASSWORD
\getenv connect TELLONCE_CONNECT_PASSWORD
\getenv domain TELLONCE_DOMAIN_PASSWORD
\getenv analyst TELLONCE_ANALYST_PASSWORD
ALTER ROLE tellonce_owner LOGIN PASSWORD :'owner';
CREATE ROLE tellonce_consumer LOGIN PASSWORD :'consumer' IN ROLE consumer;
CREATE ROLE tellonce_connect LOGIN REPLICATION PASSWORD :'connect' IN ROLE connect;
CREATE ROLE loans_service LOGIN PASSWORD :'domain' IN ROLE domain;
CREATE ROLE tellonce_analyst LOGIN PASSWORD :'analyst' IN ROLE analyst;
SQL
