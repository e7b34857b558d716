package transport

import (
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

// checkCode holds the options of code mode to what makes sense. Negative steps are no unsigned number already.
func checkCode(o gym.CodeOptions) error {
	if o.Limits.Time < 0 {
		return fmt.Errorf("-%stime %v: want 0 or more", codePrefix, o.Limits.Time)
	}
	for name, v := range map[string]int64{
		"memory": o.Limits.Memory, "output": int64(o.Limits.Output), "nesting": int64(o.Limits.Nesting),
		"calls": int64(o.Limits.Calls), "size": int64(o.Limits.Code), "processes": int64(o.Processes),
	} {
		if v < 0 {
			return fmt.Errorf("-%s%s %d: want 0 or more", codePrefix, name, v)
		}
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
