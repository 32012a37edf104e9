#!/bin/sh
# Stops the services where the package goes, and not where a newer one takes its place: $1 is "remove" for dpkg and 0
# for rpm.
set -e
case $1 in
remove | 0) if [ -d /run/systemd/system ]; then systemctl --no-reload disable --now posthorn-web.service posthorn-worker.service; fi ;;
esac
