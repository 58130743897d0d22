package webhook_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"earshot/webhook"
)

// A receiver verifies first and recognizes repetitions by the delivery id. It
// answers with any 2xx status once the event is stored.
func ExampleVerifyRequest() {
	const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw" // from the registration's answer
	handled := map[string]bool{}                            // a table in a real receiver

	receive := func(w http.ResponseWriter, r *http.Request) {
		event, err := webhook.VerifyRequest(r, secret, time.Now())
		switch {
		case errors.Is(err, webhook.ErrMissingSecret):
			http.Error(w, "not configured", http.StatusInternalServerError)
			return
		case err != nil:
			http.Error(w, "not genuine", http.StatusBadRequest)
			return
		}
		if !handled[event.DeliveryID] {
			handled[event.DeliveryID] = true
			fmt.Printf("%s: %s\n", event.Type, event.Body)
		}
		w.WriteHeader(http.StatusNoContent)
	}

	// The same delivery twice, as after an answer that was lost.
	body := []byte(`{"event":"vote.created"}`)
	for range 2 {
		r := httptest.NewRequest(http.MethodPost, "/hook", bytes.NewReader(body))
		r.Header.Set(webhook.HeaderEvent, "vote.created")
		r.Header.Set(webhook.HeaderDelivery, "dlv_01")
		r.Header.Set(webhook.HeaderSignature, webhook.Sign(secret, time.Now(), body))
		w := httptest.NewRecorder()
		receive(w, r)
		fmt.Println(w.Code)
	}
	// Output:
	// vote.created: {"event":"vote.created"}
	// 204
	// 204
}

// A receiver's test makes deliveries with Sign, at any time it chooses.
func ExampleSign() {
	body := []byte(`{"test": 2432232314}`)
	fmt.Println(webhook.Sign("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", time.Unix(1614265330, 0), body))
	// Output:
	// t=1614265330,v1=2e37df5d4a028c51a7f3133d64ae1e300d2c2c900f1b1d49d4369ad2530f8964
}

// A receiver whose framework has already read the body passes its bytes.
func ExampleVerify() {
	const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	sent := time.Unix(1614265330, 0)
	header := webhook.Sign(secret, sent, []byte(`{"b":1,"a":2}`))

	fmt.Println(webhook.Verify(secret, header, []byte(`{"b":1,"a":2}`), sent.Add(time.Minute)))
	fmt.Println(webhook.Verify(secret, header, []byte(`{"a":2,"b":1}`), sent.Add(time.Minute)))
	fmt.Println(webhook.Verify(secret, header, []byte(`{"b":1,"a":2}`), sent.Add(time.Hour)))
	// Output:
	// <nil>
	// webhook: no signature matches
	// webhook: the timestamp is too far from now
}

func ExampleRetryDelay() {
	for failed := 1; failed <= webhook.MaxAttempts; failed++ {
		fmt.Println(webhook.RetryDelay(failed))
	}
	// Output:
	// 30s true
	// 2m0s true
	// 10m0s true
	// 1h0m0s true
	// 0s false
}
