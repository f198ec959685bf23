#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Starts Debian's MariaDB as the image of Docker Hub does: with MARIADB_DATABASE and a
# user root who has MARIADB_ROOT_PASSWORD from everywhere.
set -eu
data=/var/lib/mysql
start=/run/mysqld/start.sql
mkdir -p "$data" /run/mysqld
if [ ! -d "$data/mysql" ]; then
    mariadb-install-db --datadir="$data" --user=root --skip-test-db \
        --force --auth-root-authentication-method=normal >/tmp/install ||
        { cat /tmp/install >&2 && exit 1; }
fi
(
    umask 077
    cat >"$start" <<SQL
CREATE DATABASE IF NOT EXISTS \`$MARIADB_DATABASE\`;
ALTER USER root@localhost IDENTIFIED BY '$MARIADB_ROOT_PASSWORD';
CREATE USER IF NOT EXISTS root@'%' IDENTIFIED BY '$MARIADB_ROOT_PASSWORD';
GRANT ALL ON *.* TO root@'%' WITH GRANT OPTION;
SQL
)
exec mariadbd --user=root --datadir="$data" --bind-address='*' --init-file="$start" \
    --socket=/run/mysqld/mysqld.sock --pid-file=/run/mysqld/mysqld.pid
