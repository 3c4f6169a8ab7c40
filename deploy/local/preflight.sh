#!/bin/sh
# What the machine must have before anything else can run: Python 3.11+ with venv, Java 17+, Maven (once).
# Prints the Python to use on standard output, everything for people on standard error. As root on Debian and
# Ubuntu it installs what is missing; elsewhere it says what to install. Nothing but sh and the tools it looks for.
set -u

say() { printf '%s\n' "$*" >&2; }

python_works() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 &&
        "$1" -c 'import venv, ensurepip, lzma, ssl' >/dev/null 2>&1
}

find_python() {
    for name in ${PYTHON:-} python3 python3.14 python3.13 python3.12 python3.11; do
        if command -v "$name" >/dev/null 2>&1 && python_works "$name"; then
            command -v "$name"
            return 0
        fi
    done
    return 1
}

java_works() {
    if [ -n "${JAVA_HOME:-}" ] && [ -x "$JAVA_HOME/bin/java" ]; then java=$JAVA_HOME/bin/java; else java=java; fi
    said=$("$java" -version 2>&1) || return 1
    version=${said#*version \"}
    major=${version%%[!0-9]*}
    [ "${major:-0}" -ge 17 ] 2>/dev/null
}

# Maven only fetches the engines: once they are in the cache (see jars.py) it is not needed.
maven_works() {
    command -v mvn >/dev/null 2>&1 && return 0
    if [ "$(id -u)" = 0 ]; then own=/var/cache; else own=${XDG_CACHE_HOME:-${HOME:-}/.cache}; fi
    for manifest in "${TELLONCE_CACHE:-$own/tellonce}"/*/manifest.json; do
        [ -f "$manifest" ] && return 0
    done
    return 1
}

look() {
    missing='' packages=''
    find_python >/dev/null || { missing="$missing|Python 3.11 or newer with venv" packages="$packages python3 python3-venv"; }
    java_works || { missing="$missing|Java 17 or newer" packages="$packages default-jre-headless"; }
    maven_works || { missing="$missing|Maven 3.8 or newer" packages="$packages maven"; }
}

look
if [ -n "$packages" ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    say "installing$packages (apt-get)"
    export DEBIAN_FRONTEND=noninteractive
    # $packages is a list of words.
    # shellcheck disable=SC2086
    said=$(apt-get -qq update 2>&1 && apt-get -qq -y --no-install-recommends install $packages 2>&1) || say "$said"
    look
fi
if [ -n "$missing" ]; then
    say 'Missing on this machine:'
    rest=${missing#|}
    while [ -n "$rest" ]; do
        say "  - ${rest%%|*}"
        case $rest in *'|'*) rest=${rest#*|} ;; *) rest='' ;; esac
    done
    say "On Debian or Ubuntu: sudo apt-get install$packages"
    say 'On macOS: brew install python@3.13 openjdk maven'
    exit 1
fi
find_python
