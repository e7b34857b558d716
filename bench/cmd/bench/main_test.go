package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestWrongArguments(t *testing.T) {
	t.Chdir("../..")
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	missing := filepath.Join(file+"-not", "there")
	for _, c := range []struct{ args, want string }{
		{"quick", `"quick" is no flag`},
		{"-doors nope", `there is no "nope"; there are ws-step, `},
		{"-sizes 0", `"0" is no positive number`},
		{"-rounds -1", "-rounds -1: want a positive one"},
		{"-turn -1s", "-turn -1s: want a positive one"},
		{"-idle -5", "-idle -5: want a positive one"},
		{"-json " + missing, "nothing can be written to " + missing},
		{"-profile " + missing, "nothing can be written to " + missing},
		{"-json " + filepath.Dir(file), "nothing can be written to " + filepath.Dir(file)},
		{"-write " + file, "want a directory"},
		{"-write " + filepath.Join(file, "below"), "want a directory"},
		{"-render " + file, file + " holds no results that -json wrote"},
		{"-servers floor -parts steps,scale", "name it in -servers"},
		{"-servers floor -doors streamable -profile " + file, "floor has no door streamable"},
	} {
		err := run(t.Context(), strings.Fields(c.args))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", c.args, err, c.want)
		}
	}
	if _, err := parse([]string{"-reference=false", "-servers", "openenv (Python)"}); err == nil {
		t.Error("no server is left, and that is no error")
	}
}

func TestOneServerHasPartsOfItsOwn(t *testing.T) {
	t.Chdir("../..")
	c, err := parse([]string{"-servers", "mcp-go"})
	if got := strings.Join(c.parts, " "); err != nil || got != "steps opens idle starts" {
		t.Errorf("got %q, %v", got, err)
	}
	c, err = parse(nil)
	if err != nil || len(c.parts) != len(allParts) {
		t.Errorf("got %q, %v", c.parts, err)
	}
}
