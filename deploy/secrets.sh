#!/bin/sh
# Makes the secrets of deploy/compose.yaml, in deploy/secrets or the directory that is
# given, where they aren't there yet. Without them what is in the database can't be
# read: keep a copy of the directory where nobody else gets.
set -eu
dir=${1:-$(dirname "$0")/secrets}
umask 022
mkdir -p "$dir"
# The directory keeps others out. The files themselves are read by users of
# containers, which have nothing to do with those of this machine.
chmod 0700 "$dir"

# make NAME VALUE writes a file, as a whole or not at all.
make() {
	if [ ! -e "$dir/$1" ]; then
		printf '%s\n' "$2" >"$dir/.$1"
		mv "$dir/.$1" "$dir/$1"
		echo "made $dir/$1"
	fi
}
make postgres_password "$(openssl rand -hex 24)"
make earshot_password "$(openssl rand -hex 24)"
make temporal_password "$(openssl rand -hex 24)"
make grafana_password "$(openssl rand -hex 24)"
make database_url "postgres://earshot:$(cat "$dir/earshot_password")@postgres:5432/earshot?sslmode=disable"
make secret_keys "k1:$(openssl rand -base64 32)"
make email_hash_key "$(openssl rand -base64 32)"
# Empty is none: write smtps://user:password@host into the first for e-mail, and a
# key into the second for Temporal Cloud, and what `openssl rand -hex 32` says into the third,
# for whoever tells of bounced e-mails.
make smtp_url ""
make temporal_api_key ""
make mail_bounce_secret ""
