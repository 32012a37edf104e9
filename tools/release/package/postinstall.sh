#!/bin/sh
# The user of the services. They are started by the administrator, once /etc/posthorn.env says where the database is.
set -e
if command -v systemd-sysusers >/dev/null; then
  systemd-sysusers posthorn.conf
elif ! id posthorn >/dev/null 2>&1; then
  useradd --system --no-create-home --shell /usr/sbin/nologin posthorn
fi
if [ -d /run/systemd/system ]; then systemctl daemon-reload; fi
