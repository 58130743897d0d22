package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/go-faster/errors"

	"earshot/webhook"
)

// Results of checking a signature.
const (
	signatureValid     = "valid"
	signatureInvalid   = "INVALID"
	signatureUnchecked = "not checked"
)

// received is the record of one request in the output.
type received struct {
	Time       time.Time `json:"time"`
	Event      string    `json:"event"`
	DeliveryID string    `json:"deliveryId"`
	// Seen counts the requests of this delivery so far: the attempts that reached this receiver.
	Seen      int    `json:"seen"`
	Signature string `json:"signature"`
	// Reason explains a status outside of 2xx.
	Reason  string          `json:"reason,omitempty"`
	Status  int             `json:"status"`
	Payload json.RawMessage `json:"payload,omitempty"`
}

// receiver is the handler of `earshot listen`.
type receiver struct {
	options listenOptions
	out     io.Writer
	// forward passes deliveries on. If it is nil, the receiver answers 200.
	forward *forwarder
	// path is the path of the URL that this run registered. It is empty without a registered
	// webhook.
	path string
	// enough is closed when the requested number of deliveries has been accepted.
	enough chan struct{}

	mu       sync.Mutex // allows one request at a time to be counted or printed
	requests int
	seen     map[string]int
	accepted map[string]bool
}

func newReceiver(o listenOptions, out io.Writer) *receiver {
	return &receiver{
		options: o, out: out, enough: make(chan struct{}),
		seen: map[string]int{}, accepted: map[string]bool{},
	}
}

func (r *receiver) acceptedCount() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.accepted)
}

// ServeHTTP receives one delivery.
func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	if request.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		w.Header().Set(listenHeader, r.path)
		http.Error(w, "this takes webhooks, by POST", http.StatusMethodNotAllowed)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, request.Body, webhook.MaxBody))
	if err != nil {
		http.Error(w, "the body can't be read", http.StatusBadRequest)
		return
	}
	d := received{
		Time:       time.Now(),
		Event:      request.Header.Get(webhook.HeaderEvent),
		DeliveryID: request.Header.Get(webhook.HeaderDelivery),
	}
	if r.options.payload {
		d.Payload = rawJSON(body)
	}
	answer := r.decide(&d, request, body)
	r.note(&d)
	if d.Reason != "" && answer == nil {
		answer = []byte(d.Reason + "\n")
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(d.Status)
	_, _ = w.Write(answer) //nolint:gosec // the service keeps it as text, and no browser posts here
}

// decide chooses the answer. Only deliveries with a valid signature are forwarded.
func (r *receiver) decide(d *received, request *http.Request, body []byte) (answer []byte) {
	number := r.count(d)
	d.Signature, d.Status, d.Reason = r.check(request, body, d.Time)
	if d.Status != http.StatusOK {
		return nil
	}
	if number <= r.options.failFirst {
		d.Status, d.Reason = http.StatusInternalServerError, fmt.Sprintf("asked to fail, %d of %d", number, r.options.failFirst)
		return nil
	}
	if r.forward != nil {
		d.Status, answer, d.Reason = r.forward.pass(request, body)
	}
	return answer
}

// count returns the sequence number of the request.
func (r *receiver) count(d *received) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests++
	r.seen[d.DeliveryID]++
	d.Seen = r.seen[d.DeliveryID]
	return r.requests
}

// note prints an answered request and closes enough when the count is reached.
func (r *receiver) note(d *received) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.show(d)
	if !succeeded(d.Status) || r.accepted[d.DeliveryID] {
		return
	}
	r.accepted[d.DeliveryID] = true
	if len(r.accepted) == r.options.count {
		close(r.enough)
	}
}

func (r *receiver) check(request *http.Request, body []byte, now time.Time) (signature string, status int, reason string) {
	secrets, err := r.secrets()
	if err != nil { // a local problem, so the sender should retry
		return signatureUnchecked, http.StatusInternalServerError, err.Error()
	}
	if len(secrets) == 0 {
		return signatureUnchecked, http.StatusOK, ""
	}
	for _, secret := range secrets {
		request.Body = io.NopCloser(bytes.NewReader(body))
		if _, err = webhook.VerifyRequest(request, secret, now); err == nil {
			return signatureValid, http.StatusOK, ""
		}
	}
	return signatureInvalid, http.StatusBadRequest, err.Error()
}

// secrets returns the secrets for checking signatures. An empty list disables the check.
func (r *receiver) secrets() ([]string, error) {
	if r.options.secretFile == "" {
		return r.options.secrets, nil
	}
	text, err := os.ReadFile(r.options.secretFile)
	if err != nil {
		return nil, errors.New("the secret file can't be read")
	}
	secrets := strings.Fields(string(text))
	if len(secrets) == 0 {
		return nil, errors.New("the secret file is empty")
	}
	return secrets, nil
}

func (r *receiver) show(d *received) {
	if r.options.asJSON {
		_ = json.NewEncoder(r.out).Encode(d) // an error means that stdout is closed
		return
	}
	status := fmt.Sprint(d.Status)
	if d.Reason != "" {
		status += " (" + d.Reason + ")"
	}
	fmt.Fprintf(r.out, "%s  %-20s %-30s  attempt %d  signature %s  answered %s\n", d.Time.Format("15:04:05.000"),
		orDash(d.Event), orDash(d.DeliveryID), d.Seen, d.Signature, status)
	if d.Payload != nil {
		fmt.Fprintln(r.out, indented(d.Payload))
	}
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// rawJSON returns a JSON body unchanged and any other body as a JSON string.
func rawJSON(body []byte) json.RawMessage {
	if json.Valid(body) {
		return body
	}
	text, _ := json.Marshal(string(body)) // marshalling a string can't fail
	return text
}

func indented(payload json.RawMessage) string {
	var out bytes.Buffer
	if json.Indent(&out, payload, "  ", "  ") != nil {
		return string(payload)
	}
	return "  " + out.String()
}
