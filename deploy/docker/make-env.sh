#!/bin/sh
# Writes random passwords for docker-compose.yml into .env at the clone's top, for its owner alone.
# Never replaces a password: the database keeps the ones it was made with.
set -eu
cd "$(dirname "$0")/../.."
umask 077
touch .env
for login in SUPERUSER OWNER CONSUMER CONNECT DOMAIN ANALYST; do
    if ! grep -q "^TELLONCE_${login}_PASSWORD=" .env; then
        password=$(od -An -N24 -tx1 /dev/urandom | tr -d ' \n')
        printf 'TELLONCE_%s_PASSWORD=%s\n' "$login" "$password" >>.env
    fi
done
chmod 600 .env
