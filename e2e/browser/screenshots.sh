#!/usr/bin/env bash
# Takes the pictures of docs/images again: starts a stack of its own with the demo, and opens its pages in Chromium.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
earshot=$PWD/.earshot/bin/earshot images=$PWD/docs/images
CHROMIUM=${CHROMIUM:-$(command -v chromium || command -v chromium-browser || command -v google-chrome)} || {
  echo "make screenshots: there is no Chromium: run make needs, or name one in CHROMIUM" >&2
  exit 1
}
work=$(mktemp -d)
chmod 711 "$work" # Postgres may run as another user
export EARSHOT_DIR=$work/state EARSHOT_PORT=0 EARSHOT_POSTGRES_PORT=0 EARSHOT_METRICS_PORT=0 \
  EARSHOT_TEMPORAL_PORT=0 EARSHOT_TEMPORAL_UI_PORT=0
trap '"$earshot" reset --yes >/dev/null; rm -rf "$work"' EXIT

# First the refused deliveries fail for good. Then their replays wait for a retry that is not due soon.
EARSHOT_WEBHOOK_RETRY_DELAYS=100ms,100ms,100ms,100ms "$earshot" up --demo --detach
. "$EARSHOT_DIR/dev.env"
get() { curl -sS --fail-with-body -H "Authorization: Bearer $EARSHOT_API_KEY" "$EARSHOT_BASE_URL$1"; }
webhook=$(get /v1/webhooks | grep -o 'whk_[0-9a-z]*' | head -1)
# Another webhook has no receiver, and fails six times in a row. Its posts are on a board of their own.
post() { curl -sS --fail-with-body -H "Authorization: Bearer $EARSHOT_API_KEY" -H "Content-Type: application/json" "$EARSHOT_BASE_URL$1" -d "$2"; }
board=$(post /v1/boards '{"name": "Internal"}' | grep -o 'brd_[0-9a-z]*' | head -1)
broken=$(post /v1/webhooks '{"url": "http://127.0.0.1:1/hooks", "events": ["post.created"]}' | grep -o 'whk_[0-9a-z]*' | head -1)
for n in 1 2 3 4 5 6; do post "/v1/boards/$board/posts" "{\"title\": \"Note $n\"}" >/dev/null; done
while get "/v1/webhooks/$broken/deliveries?status=pending" | grep -q dlv_; do sleep 0.2; done
while get "/v1/webhooks/$webhook/deliveries?status=pending" | grep -q dlv_; do sleep 0.2; done
"$earshot" down
# E-mails to end-users need a public origin, so the API keeps its port.
EARSHOT_PORT=${EARSHOT_BASE_URL##*:} EARSHOT_PUBLIC_ORIGIN=$EARSHOT_BASE_URL EARSHOT_WEBHOOK_RETRY_DELAYS=1s,10m,10m,10m "$earshot" up --demo --detach
set -a
. "$EARSHOT_DIR/dev.env"
. "$EARSHOT_DIR/secrets.env"
set +a
"$earshot" org update --name Tidewater --slug tidewater --color '#0f766e' --subscriber-mails-allowed --subscriber-mails >/dev/null
cp e2e/browser/{package.json,package-lock.json,common.js,screenshots.js} "$work"
npm ci --prefix "$work" --silent
WEBHOOK=$webhook BROKEN=$broken CHROMIUM=$CHROMIUM IMAGES=$images node "$work/screenshots.js"
