package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// JudgeObservation reports what is wrong with the data of an observation, the body of POST /step too, as the answer to an
// echo of message.
func JudgeObservation(data []byte, message string) error {
	var d struct {
		Observation struct {
			Result *Result         `json:"result"`
			Error  json.RawMessage `json:"error"`
		} `json:"observation"`
		Done *bool `json:"done"`
	}
	if err := json.Unmarshal(data, &d); err != nil {
		return err
	}
	switch {
	case d.Observation.Error != nil && string(d.Observation.Error) != "null":
		return fmt.Errorf("the observation has the error %s", excerpt(d.Observation.Error))
	case d.Observation.Result == nil:
		return fmt.Errorf("the observation has no result: %s", excerpt(data))
	case d.Done == nil || *d.Done:
		return errors.New("the episode is done")
	}
	return d.Observation.Result.judge(message)
}

func (r Result) judge(message string) error {
	switch {
	case r.IsError:
		return errors.New("the result is an error")
	case r.Data != message || r.Structured.Result != message || len(r.Content) != 1 || r.Content[0].Text != message:
		return errors.New("the result is not the message")
	}
	return nil
}

// JudgeFrame is [JudgeObservation] of a frame of /ws.
func JudgeFrame(frame []byte, message string) error {
	var f struct {
		Type string          `json:"type"`
		Data json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(frame, &f); err != nil {
		return err
	}
	if f.Type != "observation" {
		return fmt.Errorf("want an observation, got %s", excerpt(frame))
	}
	return JudgeObservation(f.Data, message)
}

// JudgeBare reports what is wrong with a JSON-RPC answer without a handshake.
func JudgeBare(answer []byte, message string) error {
	var a struct {
		Result *Result         `json:"result"`
		Error  json.RawMessage `json:"error"`
	}
	if err := json.Unmarshal(answer, &a); err != nil {
		return err
	}
	if a.Result == nil {
		return fmt.Errorf("want a result, got %s", excerpt(answer))
	}
	return a.Result.judge(message)
}

// JudgeMCPFrame is [JudgeBare] of what an mcp frame of /ws has in it.
func JudgeMCPFrame(frame []byte, message string) error {
	var f struct {
		Type string          `json:"type"`
		Data json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(frame, &f); err != nil {
		return err
	}
	if f.Type != "mcp" {
		return fmt.Errorf("want an mcp frame, got %s", excerpt(frame))
	}
	return JudgeBare(f.Data, message)
}

// JudgeMCP reports what is wrong with an answer to a client that has initialised, be it JSON or a stream of one event.
func JudgeMCP(answer []byte, message string) error {
	if _, event, ok := bytes.Cut(answer, []byte("data: ")); ok && answer[0] != '{' {
		answer, _, _ = bytes.Cut(event, []byte("\n"))
	}
	var a struct {
		Result *struct {
			Content    []TextContent `json:"content"`
			Structured Structured    `json:"structuredContent"`
			IsError    bool          `json:"isError"`
		} `json:"result"`
	}
	if err := json.Unmarshal(answer, &a); err != nil {
		return err
	}
	switch r := a.Result; {
	case r == nil:
		return fmt.Errorf("want a result, got %s", excerpt(answer))
	case r.IsError:
		return errors.New("the result is an error")
	case r.Structured.Result != message || len(r.Content) != 1 || r.Content[0].Text != message:
		return errors.New("the result is not the message")
	}
	return nil
}
