package transport

import (
	"errors"
	"flag"
	"fmt"
	"strings"

	"github.com/openenv-go/openenv-go/pkg/codemode"
	"github.com/openenv-go/openenv-go/pkg/gym"
)

// codePrefix is what the flags of code mode begin with.
const codePrefix = "code-"

// defineCode defines the flags of code mode. Zeros leave a limit to the environment.
func defineCode(fs *flag.FlagSet, o *gym.CodeOptions) {
	d := codemode.Defaults()
	usage := func(what string, fallback any) string {
		return fmt.Sprintf("code mode: %s; 0 is the environment's own limit, or %v", what, fallback)
	}
	fs.Uint64Var(&o.Limits.Steps, codePrefix+"steps", 0, usage("`steps` of the interpreter that a piece of code may take", d.Steps))
	fs.DurationVar(&o.Limits.Time, codePrefix+"time", 0, usage("how long it may take, calls of tools included", d.Time))
	fs.Int64Var(&o.Limits.Memory, codePrefix+"memory", 0, usage("`bytes` of memory", d.Memory))
	fs.IntVar(&o.Limits.Output, codePrefix+"output", 0, usage("`bytes` that it may print, and of its outcome, a call's arguments and a message", d.Output))
	fs.IntVar(&o.Limits.Nesting, codePrefix+"nesting", 0, usage("calls within calls, and levels of data", d.Nesting))
	fs.IntVar(&o.Limits.Calls, codePrefix+"calls", 0, usage("how many tools it may call", d.Calls))
	fs.IntVar(&o.Limits.Code, codePrefix+"size", 0, usage("`bytes` of the code", d.Code))
	fs.IntVar(&o.Processes, codePrefix+"processes", 0, "code mode: how many pieces of code run at once, each in a process of its own; 0 is twice the CPUs, at least 4")
}

// maxProcesses is more than any machine has room for.
const maxProcesses = 4096

// checkCode holds the options of code mode to what makes sense.
func checkCode(o gym.CodeOptions) error {
	if wrong, ok := errors.AsType[*codemode.RangeError](o.Limits.Check()); ok {
		name := wrong.Limit
		if name == "code" {
			name = "size"
		}
		return fmt.Errorf("-%s%s %s: want %s, or 0 for the environment's own", codePrefix, name, wrong.Value, wrong.Want)
	}
	if o.Processes < 0 || o.Processes > maxProcesses {
		return fmt.Errorf("-%sprocesses %d: want 1 to %d, or 0 for twice the CPUs", codePrefix, o.Processes, maxProcesses)
	}
	return nil
}

// codeFlag is a flag of code mode that was given, or "".
func codeFlag(given map[string]bool) string {
	for name := range given {
		if strings.HasPrefix(name, codePrefix) {
			return name
		}
	}
	return ""
}
