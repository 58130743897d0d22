#!/bin/sh
# Makes the namespace, unless it is there, and waits until it can be used: the server
# learns of it within 10 seconds. TEMPORAL_ADDRESS and TEMPORAL_NAMESPACE choose it.
set -eu
temporal operator namespace describe --namespace "$TEMPORAL_NAMESPACE" >/dev/null 2>&1 ||
	temporal operator namespace create --namespace "$TEMPORAL_NAMESPACE" --retention "$NAMESPACE_RETENTION"
for _ in $(seq 60); do
	if temporal operator search-attribute list --namespace "$TEMPORAL_NAMESPACE" >/dev/null 2>&1; then
		echo "the namespace $TEMPORAL_NAMESPACE can be used"
		exit 0
	fi
	sleep 1
done
echo "the namespace $TEMPORAL_NAMESPACE can't be used after a minute" >&2
exit 1
