#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What the script of that name in Docker Hub's image is asked for: whether the database
# takes connections and has set itself up.
set -eu
MYSQL_PWD=$MARIADB_ROOT_PASSWORD exec mariadb -h 127.0.0.1 -u root \
    -e "USE \`$MARIADB_DATABASE\`" >/dev/null
