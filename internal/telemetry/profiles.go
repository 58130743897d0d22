package telemetry

import (
	"net/http"
	"net/http/pprof" // it also registers itself with http.DefaultServeMux, which nothing serves
	"time"
)

// serveProfiles serves /debug/pprof for `go tool pprof`: the time and the memory of the process by
// function. Profiles contain the names of functions and no values.
func serveProfiles(mux *http.ServeMux) {
	for path, profile := range map[string]http.HandlerFunc{
		"/debug/pprof/":        pprof.Index,
		"/debug/pprof/profile": pprof.Profile,
		"/debug/pprof/symbol":  pprof.Symbol,
		"/debug/pprof/trace":   pprof.Trace,
	} {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
			// A profile takes as many seconds as requested. Package pprof extends the write
			// deadline, but the read deadline of the request would also end it.
			_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
			profile(w, r)
		})
	}
}
