// Prints a table of environments and addresses with what Go's httpproxy makes of each, as JSON. Our
// own rules are held against it by tests/settings/test_proxy_selection.py.
package main

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"strings"

	"golang.org/x/net/http/httpproxy"
)

type row struct {
	Environ map[string]string `json:"environ"`
	URL     string            `json:"url"`
	Proxy   string            `json:"proxy"`
	Error   bool              `json:"error"`
}

var names = []string{
	"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy", "REQUEST_METHOD",
	"ALL_PROXY", "all_proxy",
}

func ask(environ map[string]string, address string) row {
	for _, name := range names {
		os.Unsetenv(name)
	}
	for name, value := range environ {
		os.Setenv(name, value)
	}
	parsed, err := url.Parse(address)
	if err != nil {
		panic(err)
	}
	found, err := httpproxy.FromEnvironment().ProxyFunc()(parsed)
	told := row{Environ: environ, URL: address, Error: err != nil}
	if found != nil {
		told.Proxy = found.Scheme + "://"
		if user := found.User; user != nil {
			password, _ := user.Password()
			told.Proxy += user.Username() + ":" + password + "@"
		}
		told.Proxy += found.Host
	}
	return told
}

func main() {
	text, err := os.ReadFile(os.Args[1])
	if err != nil {
		panic(err)
	}
	var rows []row
	if err := json.Unmarshal(text, &rows); err != nil {
		panic(err)
	}
	var lines []string
	for _, each := range rows {
		line, _ := json.Marshal(ask(each.Environ, each.URL))
		lines = append(lines, string(line))
	}
	fmt.Printf("[\n%s\n]\n", strings.Join(lines, ",\n"))
}
