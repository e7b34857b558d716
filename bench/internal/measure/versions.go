package measure

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"

	"github.com/openenv-go/openenv-go/bench/internal/report"
)

// Versions are those of what is measured: "name version".
func (b *Bench) Versions(ctx context.Context) ([]string, error) {
	var out []string
	for server, module := range map[string]string{
		report.Floor: "github.com/coder/websocket", report.MCPGo: "github.com/mark3labs/mcp-go", report.GoSDK: "github.com/modelcontextprotocol/go-sdk",
	} {
		if !slices.Contains(b.settings.Servers, server) {
			continue
		}
		version, err := exec.CommandContext(ctx, "go", "list", "-m", module).Output()
		if err != nil {
			return nil, fmt.Errorf("go list -m %s: %w", module, err)
		}
		out = append(out, strings.TrimSpace(string(version)))
	}
	if args := b.programs[report.Reference].args; args != nil {
		text, err := exec.CommandContext(ctx, args[0], "-c", `
import importlib.metadata as m, platform
print("Python", platform.python_version())
for name in "openenv", "fastmcp", "uvicorn", "websockets", "uvloop", "httptools":
    print(name, m.version(name))`).Output()
		if err != nil {
			return nil, fmt.Errorf("the reference's versions: %w", err)
		}
		out = append(out, strings.Split(strings.TrimSpace(string(text)), "\n")...)
	}
	slices.Sort(out)
	return out, nil
}
