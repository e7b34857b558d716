package gymtest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/openenv-go/openenv-go/pkg/tools"
)

// A misfit is a value that a schema refuses, and what was done to one that fits to make it.
type misfit struct {
	value json.RawMessage
	what  string
}

// oddValues take the place of each part of a value that fits.
var oddValues = []any{
	nil, true, -1, 1.5, 1e15, -1e15, "", "gymtest", []any{}, []any{nil}, map[string]any{}, map[string]any{"gymtest": nil},
}

// maxFound is how many misfits are looked for in one value.
const maxFound = 300

// misfits changes one thing at a time in value, and keeps what the schema then refuses, limit of them at most. The same
// value has the same misfits. All are objects.
func misfits(schema any, value json.RawMessage, limit int) ([]misfit, error) {
	check, err := tools.NewValidator(schema)
	if err != nil {
		return nil, err
	}
	var root any
	if err := json.Unmarshal(value, &root); err != nil {
		return nil, err
	}
	var out []misfit
	consider := func(format string, args ...any) {
		if len(out) >= maxFound {
			return
		}
		raw, err := json.Marshal(root)
		if err != nil || check.Validate(raw) == nil {
			return
		}
		if !slices.ContainsFunc(out, func(m misfit) bool { return string(m.value) == string(raw) }) {
			out = append(out, misfit{raw, fmt.Sprintf(format, args...)})
		}
	}
	// visit changes what is at a place, by set, and puts it back.
	var visit func(path string, at any, set func(any))
	visit = func(path string, at any, set func(any)) {
		if set != nil {
			for _, odd := range oddValues {
				set(odd)
				consider("%s replaced by %s", path, jsonOf(odd))
			}
			set(at)
		}
		switch at := at.(type) {
		case map[string]any:
			for _, name := range slices.Sorted(maps.Keys(at)) {
				had := at[name]
				delete(at, name)
				consider("%s left out", join(path, name))
				at[name] = had
			}
			at["gymtest_unknown"] = 1
			consider("%s added", join(path, "gymtest_unknown"))
			delete(at, "gymtest_unknown")
			for _, name := range slices.Sorted(maps.Keys(at)) {
				visit(join(path, name), at[name], func(v any) { at[name] = v })
			}
		case []any:
			for i := range at {
				visit(join(path, fmt.Sprint(i)), at[i], func(v any) { at[i] = v })
			}
		}
	}
	visit("", root, nil)
	if limit = max(limit, 0); len(out) <= limit {
		return out, nil
	}
	var some []misfit // from all parts of the value
	for i := range limit {
		some = append(some, out[i*len(out)/limit])
	}
	return some, nil
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
