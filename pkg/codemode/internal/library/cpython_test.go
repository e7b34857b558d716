package library_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// differs are the expressions whose outcome is not that of CPython, by a part of them, and why.
var differs = []struct{ part, why string }{
	{"(d.pop([1]", "a key that no dict can have is refused by an empty dict, too"},
	{`"%(a)%" %`, "a percent sign may have a name"},
	{"math.cosh(710)", "Go's overflows a little sooner"},
	{"math.sinh(710)", "Go's overflows a little sooner"},
}

func known(expr string) bool {
	for _, d := range differs {
		if strings.Contains(expr, d.part) {
			return true
		}
	}
	return false
}

// TestCPython holds the library to what CPython makes of the same expressions. They were written by
//
//	python3 testdata/generate.py
func TestCPython(t *testing.T) {
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) == 0 {
		t.Fatal("no testdata", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var rows [][2]string
			if err := json.Unmarshal(data, &rows); err != nil {
				t.Fatal(err)
			}
			wrong := 0
			for _, row := range rows {
				got, err := outcome(row[0])
				if got == row[1] || known(row[0]) {
					continue
				}
				if wrong++; wrong <= 20 {
					t.Errorf("%s\n got %s\nwant %s (%v)", row[0], got, row[1], err)
				}
			}
			t.Logf("%d of %d expressions differ", wrong, len(rows))
		})
	}
}
