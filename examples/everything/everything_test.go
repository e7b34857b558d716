package main

import (
	"testing"

	"github.com/openenv-go/openenv-go/pkg/gym/gymtest"
)

// Those of the tools that put questions to the client: they fail with all others.
var asking = []string{
	"test_elicitation",
	"test_elicitation_sep1034_defaults",
	"test_elicitation_sep1330_enums",
	"test_input_required_result_capabilities",
	"test_input_required_result_elicitation",
	"test_input_required_result_list_roots",
	"test_input_required_result_multi_round",
	"test_input_required_result_multiple_inputs",
	"test_input_required_result_request_state",
	"test_input_required_result_sampling",
	"test_input_required_result_tampered_state",
	"test_missing_capability",
	"test_sampling",
	"test_streaming_elicitation",
}

func TestEnv(t *testing.T) { gymtest.Run(t, Env, gymtest.Skip(asking...)) }
