// Prints what Go's httpproxy makes of a table of environments and addresses, as JSON. Our own rules
// are held against it by tests/settings/test_proxy_selection.py.
package main

import (
	"encoding/json"
	"net/url"
	"os"

	"golang.org/x/net/http/httpproxy"
)

type row struct {
	Environ map[string]string `json:"environ"`
	URL     string            `json:"url"`
	Proxy   string            `json:"proxy"`
	Error   bool              `json:"error"`
}

const proxy = "http://proxy.example:3128"

// Lists for NO_PROXY, and addresses to hold against each.
var lists = []struct {
	list string
	urls []string
}{
	{"", []string{
		"https://api.example", "http://api.example", "https://localhost", "http://localhost:8080",
		"https://127.0.0.1", "https://127.9.9.9:444", "https://[::1]:8443", "https://[::ffff:127.0.0.1]",
		"https://localhost.", "https://sub.localhost", "https://localhost.example", "https://0.0.0.0",
		"https://[::]", "https://10.0.0.1", "https://127.1",
	}},
	{"api.example", []string{
		"https://api.example", "https://v1.api.example", "https://a.b.api.example", "https://myapi.example",
		"https://example", "https://api.example.org", "https://api.example.", "https://api.example:8443",
		"http://api.example",
	}},
	{".api.example", []string{"https://api.example", "https://v1.api.example", "https://myapi.example"}},
	{"*.api.example", []string{"https://api.example", "https://v1.api.example"}},
	{"*", []string{"https://api.example", "https://10.0.0.1", "https://[fd00::1]"}},
	{"other.example, *", []string{"https://api.example"}},
	{"*.", []string{"https://api.example", "https://api.example."}},
	{".", []string{"https://api.example", "https://api.example."}},
	{"*:443", []string{"https://api.example"}},
	{"api*", []string{"https://api.example"}},
	{"*api.example", []string{"https://api.example", "https://my.api.example"}},
	{"API.Example", []string{"https://api.example", "https://V1.API.example"}},
	{" a.example ,\tb.example , ,,c.example", []string{
		"https://a.example", "https://b.example", "https://c.example", "https://d.example",
	}},
	{"a.example b.example", []string{"https://a.example", "https://b.example"}},
	{"a.example;b.example", []string{"https://a.example", "https://b.example"}},
	{"api.example:443", []string{
		"https://api.example", "https://api.example:443", "https://api.example:8443", "http://api.example:443",
		"http://api.example", "https://v1.api.example",
	}},
	{"api.example:80", []string{"http://api.example", "https://api.example"}},
	{".api.example:8443", []string{
		"https://v1.api.example:8443", "https://v1.api.example", "https://api.example:8443",
	}},
	{"api.example:", []string{"https://api.example", "https://api.example:8443"}},
	{"api.example:https", []string{"https://api.example"}},
	{":443", []string{"https://api.example"}},
	{"https://api.example", []string{"https://api.example"}},
	{"api.example/", []string{"https://api.example"}},
	{"api.example.", []string{"https://api.example", "https://api.example."}},
	{"10.0.0.1", []string{"https://10.0.0.1", "https://10.0.0.10", "https://10.0.0.1:8443"}},
	{"10.0.0.1:8443", []string{"https://10.0.0.1", "https://10.0.0.1:8443"}},
	{"10.0.0", []string{"https://10.0.0.1"}},
	{"10.", []string{"https://10.0.0.1"}},
	{".0.0.1", []string{"https://10.0.0.1"}},
	{"010.0.0.1", []string{"https://10.0.0.1"}},
	{"10.0.0.0/8", []string{"https://10.200.0.1", "https://11.0.0.1", "https://name.example", "https://10.0.0.1:8443"}},
	{"10.1.2.3/8", []string{"https://10.200.0.1"}},
	{"10.0.0.1/32", []string{"https://10.0.0.1", "https://10.0.0.2"}},
	{"0.0.0.0/0", []string{"https://10.0.0.1", "https://[fd00::1]", "https://api.example"}},
	{"10.0.0.0/33", []string{"https://10.0.0.1"}},
	{"10.0.0.0/08", []string{"https://10.0.0.1"}},
	{"10.0.0.0/255.0.0.0", []string{"https://10.0.0.1"}},
	{"10.0.0.0/8:443", []string{"https://10.0.0.1"}},
	{"fd00::1", []string{"https://[fd00::1]", "https://[fd00::1]:8443", "https://[fd00:0::1]", "https://[fd00::2]"}},
	{"FD00:0:0::1", []string{"https://[fd00::1]"}},
	{"[fd00::1]", []string{"https://[fd00::1]"}},
	{"[fd00::1]:8443", []string{"https://[fd00::1]:8443", "https://[fd00::1]"}},
	{"fd00::/8", []string{"https://[fd12::1]", "https://[fe80::1]", "https://10.0.0.1"}},
	{"::/0", []string{"https://[fd12::1]", "https://10.0.0.1"}},
	{"::ffff:10.0.0.1", []string{"https://10.0.0.1", "https://[::ffff:10.0.0.1]"}},
	{"10.0.0.1", []string{"https://[::ffff:10.0.0.1]"}},
	{"10.0.0.0/8", []string{"https://[::ffff:10.0.0.1]"}},
	{"::ffff:10.0.0.0/104", []string{"https://10.0.0.1", "https://11.0.0.1"}},
	{"bücher.example", []string{"https://xn--bcher-kva.example", "https://v1.xn--bcher-kva.example"}},
	{".Bücher.example", []string{"https://v1.xn--bcher-kva.example", "https://xn--bcher-kva.example"}},
	{"net_bird", []string{"https://net_bird", "https://a.net_bird"}},
}

// Environments in which one address is asked for.
var environs = []struct {
	environ map[string]string
	url     string
}{
	{map[string]string{}, "https://api.example"},
	{map[string]string{"HTTP_PROXY": proxy}, "https://api.example"},
	{map[string]string{"HTTPS_PROXY": proxy}, "http://api.example"},
	{map[string]string{"ALL_PROXY": proxy}, "https://api.example"},
	{map[string]string{"https_proxy": proxy}, "https://api.example"},
	{map[string]string{"http_proxy": proxy}, "http://api.example"},
	{map[string]string{"https_proxy": "http://small:1", "HTTPS_PROXY": "http://great:2"}, "https://api.example"},
	{map[string]string{"https_proxy": "", "HTTPS_PROXY": proxy}, "https://api.example"},
	{map[string]string{"HTTPS_PROXY": proxy, "no_proxy": "api.example"}, "https://api.example"},
	{map[string]string{"HTTPS_PROXY": proxy, "no_proxy": "b.example", "NO_PROXY": "api.example"}, "https://api.example"},
	{map[string]string{"HTTP_PROXY": proxy, "REQUEST_METHOD": "GET"}, "http://api.example"},
	{map[string]string{"http_proxy": proxy, "REQUEST_METHOD": "GET"}, "http://api.example"},
	{map[string]string{"HTTPS_PROXY": proxy, "REQUEST_METHOD": "GET"}, "https://api.example"},
	{map[string]string{"HTTP_PROXY": proxy, "REQUEST_METHOD": "GET", "NO_PROXY": "api.example"}, "http://api.example"},
	{map[string]string{"HTTP_PROXY": proxy, "REQUEST_METHOD": "GET"}, "http://localhost"},
	{map[string]string{"HTTPS_PROXY": "proxy.example:3128"}, "https://api.example"},
	{map[string]string{"HTTPS_PROXY": "proxy.example"}, "https://api.example"},
	{map[string]string{"HTTPS_PROXY": "https://proxy.example"}, "https://api.example"},
	{map[string]string{"HTTPS_PROXY": "https://proxy.example:8443/"}, "https://api.example"},
	{map[string]string{"HTTPS_PROXY": "http://[fd00::1]:3128"}, "https://api.example"},
	{map[string]string{"HTTPS_PROXY": "[fd00::1]:3128"}, "https://api.example"},
	{map[string]string{"HTTPS_PROXY": "10.0.0.1:3128"}, "https://api.example"},
	{map[string]string{"HTTPS_PROXY": "http://me:p%40ss%3Aw%2Ford@proxy.example:3128"}, "https://api.example"},
	{map[string]string{"HTTPS_PROXY": "me:secret@proxy.example:3128"}, "https://api.example"},
	{map[string]string{"HTTPS_PROXY": "http://me@proxy.example:3128"}, "https://api.example"},
	{map[string]string{"HTTPS_PROXY": proxy, "NO_PROXY": "proxy.example"}, "https://api.example"},
	{map[string]string{"HTTPS_PROXY": "http://127.0.0.1:3128"}, "https://api.example"},
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
	rows := []row{}
	for _, each := range lists {
		for _, address := range each.urls {
			environ := map[string]string{"HTTP_PROXY": proxy, "HTTPS_PROXY": proxy, "NO_PROXY": each.list}
			rows = append(rows, ask(environ, address))
		}
	}
	for _, each := range environs {
		rows = append(rows, ask(each.environ, each.url))
	}
	os.Stdout.WriteString("[\n")
	for i, each := range rows {
		line, _ := json.Marshal(each)
		os.Stdout.Write(line)
		if i < len(rows)-1 {
			os.Stdout.WriteString(",")
		}
		os.Stdout.WriteString("\n")
	}
	os.Stdout.WriteString("]\n")
}
