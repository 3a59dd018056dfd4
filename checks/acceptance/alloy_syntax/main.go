// Whether Alloy's own parser takes a file.
package main

import (
	"fmt"
	"os"

	"github.com/grafana/alloy/syntax/parser"
)

func main() {
	text, err := os.ReadFile(os.Args[1])
	if err == nil {
		_, err = parser.ParseFile(os.Args[1], text)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
