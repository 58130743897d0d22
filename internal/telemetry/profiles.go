package telemetry

import (
	"net/http"
	"net/http/pprof" // it also registers itself with http.DefaultServeMux, which nothing serves
	"time"
)

// serveProfiles answers /debug/pprof, as `go tool pprof` asks for it: what the process
// spends its time and memory on. Names of functions, no values.
func serveProfiles(mux *http.ServeMux) {
	for path, profile := range map[string]http.HandlerFunc{
		"/debug/pprof/":        pprof.Index,
		"/debug/pprof/profile": pprof.Profile,
		"/debug/pprof/symbol":  pprof.Symbol,
		"/debug/pprof/trace":   pprof.Trace,
	} {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
			// A profile takes the seconds that it is asked for. Package pprof moves the
			// deadline of the answer; that of the request would end it too.
			_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
			profile(w, r)
		})
	}
}
