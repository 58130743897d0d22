#!/usr/bin/env bash
# One story against the stack of `make up`: feedback comes in and signed
# webhooks go out. The first delivery fails and arrives with its retry. You can
# run it repeatedly: each run makes a board, a contact and a post, and removes
# its webhook at the end.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
dir=${EARSHOT_DIR:-$root/.earshot}
earshot=${EARSHOT_BIN:-$root/.earshot/bin/earshot}
[ -r "$dir/dev.env" ] || { echo "no $dir/dev.env: start the stack with make up" >&2; exit 1; }
. "$dir/dev.env"

# call METHOD PATH [JSON] prints the answer. An error ends the script with the
# message of the service.
call() {
  curl -sS --fail-with-body -X "$1" "$EARSHOT_BASE_URL$2" -H "Authorization: Bearer $EARSHOT_API_KEY" \
    ${3:+-H 'Content-Type: application/json' -d "$3"} >"$tmp/answer" || { echo "$1 $2: $(cat "$tmp/answer")" >&2; exit 1; }
  cat "$tmp/answer"
}
id() { grep -o "$1_[0-9a-z]*" | head -1; }                      # the first id with a prefix in an answer
field() { sed -nE "s/.*\"$1\":\"?([^,\"}]*).*/\1/p" <<<"$2"; }  # one member of a flat JSON object

curl -sf "$EARSHOT_BASE_URL/readyz" >/dev/null || { echo "nothing answers at $EARSHOT_BASE_URL: start the stack with make up" >&2; exit 1; }
tmp=$(mktemp -d) webhook='' listener=''
cleanup() {
  [ -z "$webhook" ] || (call DELETE "/v1/webhooks/$webhook") >/dev/null || true
  [ -z "$listener" ] || kill "$listener" 2>/dev/null || true
  rm -rf "$tmp"
}
trap cleanup EXIT

echo "1. A receiver on this machine. It answers 500 to the first request."
"$earshot" listen --port 0 --fail-first 1 --count 6 --timeout 3m --secret-file "$tmp/secret" 2>"$tmp/listen" &
listener=$!
until url=$(grep -so 'http://[^ ]*' "$tmp/listen"); do
  kill -0 "$listener" 2>/dev/null || { cat "$tmp/listen" >&2; exit 1; }
  sleep 0.1
done
echo "   $url"

echo "2. A webhook to it. Its secret is shown once, in the answer to the registration."
answer=$(call POST /v1/webhooks '{"url":"'"$url"'","events":["contact.created","contact.updated","post.created",
  "post.status_changed","comment.created","vote.created"]}')
webhook=$(id whk <<<"$answer")
grep -o 'whsec_[0-9A-Za-z]*' <<<"$answer" >"$tmp/secret"
echo "   $webhook"

echo "3. A board with a tag, and a customer who asks for something. Each event arrives with its signature:"
board=$(call POST /v1/boards '{"name":"Feature requests"}' | id brd)
tag=$(call POST "/v1/boards/$board/tags" '{"name":"Export","color":"#2563eb"}' | id tag)
user="user-$(date +%s)-$$"
contact=$(call POST /v1/contacts/identify '{"externalUserId":"'"$user"'","email":"ada@example.com"}' | id ctc)
call POST /v1/contacts/identify '{"externalUserId":"'"$user"'","name":"Ada","plan":"pro"}' >/dev/null
post=$(call POST "/v1/boards/$board/posts" '{"title":"Export dashboards as PDF","body":{"text":"For my weekly report."},
  "contactId":"'"$contact"'","tagIds":["'"$tag"'"]}' | id pst)
call POST "/v1/posts/$post/comments" '{"body":{"text":"Which paper size do your readers need?"}}' >/dev/null
call POST "/v1/posts/$post/votes" >/dev/null
call PATCH "/v1/posts/$post" '{"status":"planned"}' >/dev/null

pending() { call GET "/v1/webhooks/$webhook/deliveries?status=pending" | grep -o "$1" || true; }
while [ "$(pending dlv_ | wc -l)" -gt 1 ]; do sleep 0.1; done
echo "4. The delivery that failed comes again; by default the first retry is 30 s after the attempt."
pending '"nextAttemptAt":"[^"]*"' | sed "s/.*:\"\(.*\)\"/   The service plans it for \1; now it is $(date -u +%FT%TZ)./"
wait "$listener" || { tail -1 "$tmp/listen" >&2; exit 1; }
listener=''

echo "5. The service's own log of the deliveries, newest first:"
while [ -n "$(pending dlv_)" ]; do sleep 0.1; done
call GET "/v1/webhooks/$webhook/deliveries" | sed $'s/},{/}\\\n{/g' | while read -r delivery || [ -n "$delivery" ]; do
  printf '   %-20s %s  %s after %s attempt(s)\n' "$(field eventType "$delivery")" "$(id dlv <<<"$delivery")" \
    "$(field status "$delivery")" "$(field attemptCount "$delivery")"
done

echo "6. The same in Temporal's web UI:"
echo "   $TEMPORAL_UI_URL/namespaces/default/workflows?query=WebhookID%20%3D%20%27$webhook%27"
