package server_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/chaind/chaind/server"
	"github.com/chaind/chaind/sidecar"
)

// A server over sidecars alone serves evidence without a store.
func ExampleNew() {
	sidecars, err := sidecar.Open(context.Background(), sidecar.Config{Blobs: sidecar.NewMemory()})
	if err != nil {
		fmt.Println(err)
		return
	}
	metrics := server.NewMetrics("v1.0.0", nil)
	handler, err := server.New(server.Config{Sidecars: sidecars, Metrics: metrics, Hosts: []string{}})
	if err != nil {
		fmt.Println(err)
		return
	}
	// Listen with server.NewHTTPServer("127.0.0.1:8787", handler, logger).
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "http://localhost/healthz", nil))
	fmt.Println(answer.Code, answer.Body)
	// Output: 200 {"status":"ok"}
}
