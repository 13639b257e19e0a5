package main

import (
	"fmt"
	"net/http"
	"time"
)

type healthCmd struct {
	URL string `help:"Base address of the daemon." default:"http://127.0.0.1:8477" env:"CHAIND_URL"`
	clientFlags
	Ready   bool          `help:"Ask /readyz (is it taking events in and sealing?) instead of /healthz (is it alive?)."`
	Timeout time.Duration `help:"How long to wait." default:"3s"`
}

func (c *healthCmd) Help() string {
	return `Exits 0 when the daemon answers well, 1 otherwise. Containers use it as their health check.

Examples:
  chaind health
  chaind health --ready --url http://127.0.0.1:8477`
}

func (c *healthCmd) Run(a *app) error {
	path := "/healthz"
	if c.Ready {
		path = "/readyz"
	}
	status, body, err := c.get(a, c.URL+path, c.Timeout)
	if err != nil {
		return cannot(err, "is the daemon running, and is --url its HTTP address?")
	}
	if err := a.printf("%s\n", body); err != nil {
		return err
	}
	if status != http.StatusOK {
		return cannot(fmt.Errorf("the daemon answered %d", status), "")
	}
	return nil
}
