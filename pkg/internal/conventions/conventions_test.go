package conventions

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/openenv-go/openenv-go/"

// layers are the packages from the bottom up: a package imports only what stands below it. examples stand above all.
var layers = []string{
	"pkg/internal/strictjson",
	"pkg/codemode/internal/fault",
	"pkg/codemode/internal/dialect",
	"pkg/codemode/internal/library",
	"pkg/codemode",
	"pkg/codemode/codemodetest",
	"pkg/codemode/sandbox",
	"pkg/tools",
	"pkg/gym",
	"pkg/session",
	"pkg/access",
	"pkg/transport",
	"pkg/mount",
	"pkg/gym/gymtest",
	"examples",
}

// layerOf is the layer of a package: that of the nearest path above it.
func layerOf(path string) int {
	found := -1
	for i, l := range layers {
		if (path == l || strings.HasPrefix(path, l+"/")) && (found < 0 || len(l) > len(layers[found])) {
			found = i
		}
	}
	return found
}

type pkg struct {
	ImportPath, Dir, Doc string
	Imports              []string
	GoFiles              []string
}

func packages(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Dir,Doc,Imports,GoFiles", module+"...")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var all []pkg
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

func TestImportsPointDown(t *testing.T) {
	seen := map[int]bool{}
	for _, p := range packages(t) {
		at := layerOf(strings.TrimPrefix(p.ImportPath, module))
		seen[at] = true
		for _, imp := range p.Imports {
			rel, ours := strings.CutPrefix(imp, module)
			if to := layerOf(rel); ours && at >= 0 && to >= at && p.ImportPath != imp {
				t.Errorf("%s imports %s, which does not stand below it", p.ImportPath, imp)
			}
			if imp == "net/http" && at < layerOf("pkg/transport") && at >= 0 {
				t.Errorf("%s imports net/http; only transport and mount know HTTP", p.ImportPath)
			}
		}
	}
	for i, l := range layers {
		if !seen[i] {
			t.Errorf("there is no package %s", l)
		}
	}
}

func TestPackagesAreDocumented(t *testing.T) {
	for _, p := range packages(t) {
		if p.Doc == "" && len(p.GoFiles) > 0 {
			t.Errorf("%s has no package comment", p.ImportPath)
		}
		if strings.Contains(p.ImportPath, "/pkg/") && len(p.GoFiles) > 0 && !slices.Contains(p.GoFiles, "doc.go") {
			t.Errorf("%s has no doc.go", p.ImportPath)
		}
	}
}

func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

var goBlock = regexp.MustCompile("(?s)```go\n(.*?)```")

// TestSnippetsCompile builds the Go code of the documents: a block that is a whole program by itself, the others of a
// document together.
func TestSnippetsCompile(t *testing.T) {
	for _, doc := range []string{"README.md", "docs/agents.md", "docs/authoring.md", "docs/code-mode.md", "docs/modes.md"} {
		t.Run(doc, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(filepath.Join(root(t), doc))
			if err != nil {
				t.Fatal(err)
			}
			var fragments strings.Builder
			n := 0
			for _, m := range goBlock.FindAllSubmatch(text, -1) {
				n++
				if bytes.HasPrefix(m[1], []byte("package ")) {
					build(t, string(m[1]))
				} else {
					fragments.Write(m[1])
				}
			}
			if n == 0 {
				t.Fatal("no Go code found")
			}
			if fragments.Len() > 0 {
				build(t, program(fragments.String()))
			}
		})
	}
}

// program makes a program of declarations, with the imports that they use.
func program(declarations string) string {
	var b strings.Builder
	b.WriteString("package main\n\n")
	for name, path := range map[string]string{
		"context": "context", "gym": module + "pkg/gym", "tools": module + "pkg/tools", "transport": module + "pkg/transport",
		"json": "encoding/json", "sync": "sync", "time": "time", "errors": "errors", "fmt": "fmt", "testing": "testing", "gymtest": module + "pkg/gym/gymtest",
		"mount": module + "pkg/mount", "codemode": module + "pkg/codemode",
		"mcp": "github.com/modelcontextprotocol/go-sdk/mcp", "jsonschema": "github.com/google/jsonschema-go/jsonschema",
	} {
		if strings.Contains(declarations, name+".") {
			fmt.Fprintf(&b, "import %q\n", path)
		}
	}
	return b.String() + declarations + "\nfunc main() {}\n"
}

func build(t *testing.T, source string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "vet", file)
	cmd.Dir = root(t)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestDependenciesHaveReasons: each direct dependency of the main module is explained in docs/design.md.
func TestDependenciesHaveReasons(t *testing.T) {
	mod, err := os.ReadFile(filepath.Join(root(t), "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	design, err := os.ReadFile(filepath.Join(root(t), "docs/design.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^\t(\S+) v\S+$`).FindAllStringSubmatch(string(mod), -1) {
		if !strings.Contains(string(design), m[1]) {
			t.Errorf("docs/design.md does not say why the module needs %s", m[1])
		}
	}
}

var codeBlock = regexp.MustCompile("(?s)```.*?```")

var link = regexp.MustCompile(`\]\(([^)#]+)\)`)

// TestLinksLead: links between documents lead to files that exist.
func TestLinksLead(t *testing.T) {
	docs, err := filepath.Glob(filepath.Join(root(t), "docs/*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, doc := range append(docs, filepath.Join(root(t), "README.md")) {
		text, err := os.ReadFile(doc)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(codeBlock.ReplaceAllString(string(text), ""), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(doc), m[1])); err != nil {
				t.Errorf("%s: the link %s leads nowhere", filepath.Base(doc), m[1])
			}
		}
	}
}
