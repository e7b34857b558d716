package gym_test

import (
	"context"
	"strings"
	"testing"

	"github.com/openenv-go/openenv-go/pkg/codemode"
	"github.com/openenv-go/openenv-go/pkg/gym"
	"github.com/openenv-go/openenv-go/pkg/tools"
)

// TestCodeActionsFitTheSchema: what /schema says of actions is what is taken, with code mode and without.
func TestCodeActionsFitTheSchema(t *testing.T) {
	for name, limits := range map[string]*codemode.Limits{"with": {}, "without": nil} {
		env := gym.Environment[int]{
			Name: "counter", CodeMode: limits,
			New:   func(context.Context, *gym.Session) (int, error) { return 0, nil },
			Tools: tools.New(tools.Func("count", "", func(n int, _ context.Context, _ tools.None) (int, error) { return n, nil })),
		}
		class, err := env.Compile(t.Context(), tools.ModeSimulation)
		if err != nil {
			t.Fatal(err)
		}
		defer class.Close()
		published, err := tools.NewValidator(class.Schemas.Action)
		if err != nil {
			t.Fatal(err)
		}
		for action, taken := range map[string]bool{
			`{"type":"execute_code","code":"1"}`:                               true,
			`{"type":"execute_code","code":"1","timeout_s":0.5,"metadata":{}}`: true,
			`{"type":"execute_code","code":"1","timeout_s":null}`:              true,
			`{"type":"execute_code","code":"1","timeout_s":-1}`:                false,
			`{"type":"execute_code","code":"1","timeout_s":"1"}`:               false,
			`{"type":"execute_code","code":null}`:                              false,
			`{"type":"execute_code"}`:                                          false,
			`{"type":"execute_code","code":"1","tool_name":"count"}`:           false,
			`{"type":"execute_code","code":"1","arguments":{}}`:                false,
			`{"type":"execute_code","code":"1","more":1}`:                      false,
			`{"code":"1"}`: false,
			`{"type":"call_tool","tool_name":"count","code":"1"}`:                      false,
			`{"type":"list_tools","code":"1"}`:                                         false,
			`{"type":"call_tool","tool_name":"execute_code","arguments":{"code":"1"}}`: true,
			`{"tool_name":"count"}`:                                                    true,
			`{"type":"list_tools"}`:                                                    true,
			`{"type":"list_tools","tool_name":"count"}`:                                false,
			`{"type":"run"}`:                                                           false,
		} {
			if limits == nil && strings.HasPrefix(action, `{"type":"execute_code"`) {
				taken = false
			}
			_, parsed := class.ParseAction([]byte(action))
			if fits := published.Validate([]byte(action)); (fits == nil) != taken || (parsed == nil) != taken {
				t.Errorf("%s code mode, %s: schema %v, parser %v; want it taken: %v", name, action, fits, parsed, taken)
			}
		}
	}
}
