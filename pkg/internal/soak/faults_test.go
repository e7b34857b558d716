package soak

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// The parts that break the rules, or whose environment does. What is answered is held to the rules all the same.

// killed vanishes while a call runs.
func killed(a *actor) error {
	c, err := a.open([]string{"/ws", "/ws?resume=0.2"}[a.IntN(2)])
	if err != nil {
		return err
	}
	defer c.Close()
	for range 1 + a.IntN(3) {
		if err := c.send([]string{step("wait", `{}`, ""), step("deaf", `{"ms":100}`, ""), step("add", `{"n":1}`, "")}[a.IntN(3)]); err != nil {
			return err
		}
	}
	a.pause(30)
	if a.odds(2) {
		c.reset()
	}
	return nil
}

// halfOpen stays and says nothing. A few do so until the load stops, or the server closes them for a newcomer.
func halfOpen(a *actor) error {
	c, err := a.open("/ws")
	if err != nil {
		return err
	}
	defer c.reset()
	if a.silent.Add(1) <= maxSilent {
		<-a.phase.Done()
	} else {
		a.pause(3000)
	}
	a.silent.Add(-1)
	return nil
}

// maxSilent is how many half-open connections are kept.
const maxSilent = 3

// stopsReading asks for much, reads nothing for a while, and then all of it or nothing.
func stopsReading(a *actor) error {
	c, err := a.open("/ws")
	if err != nil {
		return err
	}
	defer c.Close()
	c.SetReadBuffer(16 << 10)
	n, size := 1+a.IntN(4), 1<<(10+a.IntN(11))
	for range n {
		if err := c.send(step("big", fmt.Sprintf(`{"n":%d}`, size), "")); err != nil {
			return err
		}
	}
	a.pause(1000)
	if a.odds(2) {
		c.reset()
		return nil
	}
	for range n {
		r, _, err := c.reply()
		if err != nil {
			return err
		}
		var got string
		if json.Unmarshal([]byte(r.data()), &got) != nil || len(got) != size || !strings.HasPrefix(got, "abc") {
			return fmt.Errorf("%d bytes were wanted, and %d came: %.100s", size, len(got), r.data())
		}
		a.replies.Add(1)
	}
	return nil
}

// dribbled sends its frames byte by byte, in fragments with pings between.
func dribbled(a *actor) error {
	c, err := a.open("/ws")
	if err != nil {
		return err
	}
	defer c.Close()
	sum := 0
	for range 2 {
		n := a.IntN(100)
		sum += n
		text := step("add", fmt.Sprintf(`{"n":%d}`, n), "")
		var stream []byte
		for opcode := byte(opText); text != ""; opcode = 0 {
			cut := min(1+a.IntN(20), len(text))
			stream = append(stream, frame(opcode, cut == len(text), text[:cut])...)
			stream = append(stream, frame(opPing, true, "there?")...)
			text = text[cut:]
		}
		for i := range stream {
			if _, err := c.Write(stream[i : i+1]); err != nil {
				return err
			}
		}
		r, _, err := c.reply()
		if err == nil {
			err = r.want(strconv.Itoa(sum))
		}
		if err != nil {
			return err
		}
		a.replies.Add(1)
	}
	return a.leave(c)
}

var odd = map[string]string{
	`[1]`: "VALIDATION_ERROR", `null`: "VALIDATION_ERROR", `"x"`: "VALIDATION_ERROR", `42`: "VALIDATION_ERROR",
	`{`: "INVALID_JSON", `{"type":1,"type":1}`: "INVALID_JSON", ``: "INVALID_JSON", strings.Repeat("[", 500): "INVALID_JSON",
	`{}`: "UNKNOWN_TYPE", `{"type":"dance"}`: "UNKNOWN_TYPE", `{"type":"step"}`: "VALIDATION_ERROR",
	`{"type":"step","data":{"tool_name":7}}`: "VALIDATION_ERROR", `{"type":"state","x":1}`: "VALIDATION_ERROR",
}

// oddMessages sends text that is no frame; the session is unharmed.
func oddMessages(a *actor) error {
	c, err := a.open("/ws")
	if err != nil {
		return err
	}
	defer c.Close()
	sum, n := 0, 0
	for text, code := range odd {
		if r, got, err := c.ask(text); err != nil || r.Data.Code != code {
			return fmt.Errorf("%.100s got %.300s, %w", text, got, err)
		}
		a.replies.Add(1)
		if a.odds(3) {
			n++
			if err := a.add(c, &sum); err != nil {
				return err
			}
		}
	}
	return errors.Join(a.wantState(c, n, n), a.leave(c))
}

// brokenSocket breaks the rules of WebSockets.
func brokenSocket(a *actor) error {
	c, err := a.open([]string{"/ws", "/ws?resume=0.2"}[a.IntN(2)])
	if err != nil {
		return err
	}
	defer c.Close()
	broken := []struct {
		frame []byte
		code  int
	}{
		{frame(opBinary, true, "\x00\x01"), 1003},
		{frame(opText, true, "\xff\xfe"), 1007},
		{frame(5, true, "x"), 1002},
		{frame(opPing, false, "x"), 1002},
	}[a.IntN(4)]
	if _, err := c.Write(broken.frame); err != nil {
		return err
	}
	return c.closedWith(broken.code)
}

// flood sends far more than the server queues.
func flood(a *actor) error {
	c, err := a.open("/ws")
	if err != nil {
		return err
	}
	defer c.Close()
	if a.odds(3) { // and reads nothing of the answers
		for range 200 {
			if err := c.send(step("add", `{"n":1}`, "")); err != nil {
				return err
			}
		}
		c.reset()
		return nil
	}
	return errors.Join(a.pipeline(c, 200), a.leave(c))
}

// failingTools calls tools that fail in all the ways there are; the session goes on.
func failingTools(a *actor) error {
	c, err := a.open("/ws")
	if err != nil {
		return err
	}
	defer c.Close()
	sum, steps, adds := 0, 0, 0
	for range 1 + a.IntN(10) {
		steps++
		f := []struct{ text, want string }{
			{step("boom", `{}`, ""), "execution_error"},
			{step("fail", `{}`, ""), "execution_error"},
			{step("refuse", `{}`, ""), `failed: "no such page"`},
			{step("wait", `{}`, `,"timeout_s":0.03`), "timeout"},
			{step("deaf", `{"ms":200}`, `,"timeout_s":0.03`), "timeout"},
			{step("nosuch", `{}`, ""), "tool_not_found"},
			{step("add", `{"n":"x"}`, ""), "invalid_args"},
		}[a.IntN(7)]
		r, _, err := c.ask(f.text)
		if err == nil {
			err = r.want(f.want)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", f.text, err)
		}
		a.replies.Add(1)
		if a.odds(2) {
			steps++
			adds++
			if err := a.add(c, &sum); err != nil {
				return err
			}
		}
	}
	if a.odds(4) { // and leaves while a deaf tool runs
		if err := c.send(step("deaf", `{"ms":300}`, "")); err != nil {
			return err
		}
		c.reset()
		return nil
	}
	return errors.Join(a.wantState(c, steps, adds), a.leave(c))
}

// halfRequest sends half of a request over HTTP and vanishes.
func halfRequest(a *actor) error {
	c, err := connect(a.server.addr)
	if err != nil {
		return err
	}
	defer c.Close()
	text := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{\"jsonrpc\":",
		[]string{"/mcp", "/step", "/reset"}[a.IntN(3)], a.server.addr)
	if _, err := c.Write([]byte(text[:1+a.IntN(len(text))])); err != nil {
		return err
	}
	a.pause(50)
	if a.odds(2) {
		c.reset()
	}
	return nil
}

// killedAgent initialises, vanishes during a call, and leaves its session to the reaper.
func killedAgent(a *actor) error {
	id, err := a.initialize(a.http)
	if err != nil {
		return err
	}
	c, err := connect(a.server.addr)
	if err != nil {
		return err
	}
	defer c.Close()
	body := `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"wait","arguments":{"ms":500}}}`
	fmt.Fprintf(c, "POST /mcp HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nMcp-Session-Id: %s\r\nMcp-Protocol-Version: 2025-11-25\r\nContent-Length: %d\r\n\r\n%s",
		a.server.addr, id, len(body), body)
	a.pause(50)
	if a.odds(2) {
		c.reset()
	}
	return nil
}
