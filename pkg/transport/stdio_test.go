package transport

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/openenv-go/openenv-go/pkg/gym"
	"github.com/openenv-go/openenv-go/pkg/tools"
)

// runPipes runs an environment's main function with -stdio.
func runPipes(t *testing.T, env gym.Definition, args ...string) (c *pipeClient, stderr *lines, stop func(error), code <-chan int) {
	ctx, cancel := context.WithCancelCause(t.Context())
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	c, stderr = newPipeClient(t, toServer, fromServer), newLines()
	exit := make(chan int, 1)
	go func() {
		exit <- Run(ctx, env, append([]string{"-stdio"}, args...), func(string) string { return "" }, in, out, stderr)
	}()
	t.Cleanup(func() { // what waits for the pipes is left behind by Run
		cancel(nil)
		c.in.Close()
		c.out.Close()
	})
	return c, stderr, cancel, exit
}

// tellingEnv is a lab that tells when a call waits and when its value is closed.
func tellingEnv() (env gym.Environment[*lab], waits, closed chan struct{}) {
	waits, closed = make(chan struct{}, 1), make(chan struct{}, 1)
	env = labEnv()
	env.Tools = tools.New(tools.Func("say", "Say it.", (*lab).say), tools.Do("wait", "Waits for ever.",
		func(_ *lab, ctx context.Context, _ tools.None) error {
			waits <- struct{}{}
			<-ctx.Done()
			return ctx.Err()
		}))
	env.Close = func(*lab) error { closed <- struct{}{}; return nil }
	return env, waits, closed
}

// However it ends, with a call under way or not, the environment is closed and the exit code is 0.
func TestStdioEnds(t *testing.T) {
	for how, end := range map[string]func(c *pipeClient, stop func(error)){
		"input":   func(c *pipeClient, _ func(error)) { c.in.Close() },
		"SIGINT":  func(_ *pipeClient, stop func(error)) { stop(context.Canceled) },
		"SIGTERM": func(_ *pipeClient, stop func(error)) { stop(ErrDrain) },
		"output": func(c *pipeClient, _ func(error)) {
			c.out.Close()
			c.send(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)
			c.in.Close()
		},
	} {
		for _, state := range []string{"idle", "bare call", "agent", "agent's call"} {
			t.Run(how+"/"+state, func(t *testing.T) {
				t.Parallel()
				env, waits, closed := tellingEnv()
				c, stderr, stop, code := runPipes(t, env)
				c.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
				wantNext(t, c, `"say"`)
				if strings.HasPrefix(state, "agent") {
					become(t, c)
				}
				if strings.HasSuffix(state, "call") {
					c.send(rpcCall("wait", "{}", ""))
					within(t, "the call", waits)
				}
				read := make(chan string, 1)
				if how != "output" {
					go func() {
						rest, _ := io.ReadAll(c.buf)
						read <- string(rest)
					}()
				}
				begun := time.Now()
				end(c, stop)
				if got := within(t, "the exit", code); got != exitOK {
					t.Errorf("exit code %d: %s", got, stderr)
				}
				within(t, "the environment's end", closed)
				if took := time.Since(begun); took > lastAnswers+hurryTime {
					t.Errorf("the end took %v", took)
				}
				for _, event := range []string{"event=serving", "event=stdio_closed", "event=session_close", "event=stopped"} {
					if !strings.Contains(stderr.String(), event) {
						t.Errorf("the log lacks %s:\n%s", event, stderr)
					}
				}
				c.out.Close()
				if how != "output" {
					if rest := within(t, "the rest", read); strings.HasSuffix(state, "call") && !strings.Contains(rest, `"id":7,"error"`) {
						t.Errorf("the call got %q", rest)
					}
				}
			})
		}
	}
}

// A last line that is too long is told so, whether it ends or not.
func TestStdioLastLineTooLong(t *testing.T) {
	for _, end := range []string{"", "\n"} {
		srv, base := start(t, labEnv(), Options{MaxMessage: 1000})
		c := dialogs["stdio"].talk(t, srv, base).(*pipeClient)
		go func() {
			io.WriteString(c.in, `{"x":"`+strings.Repeat("x", 1000)+end)
			c.in.Close()
		}()
		wantNext(t, c, "-32600", "a message over 1000 bytes")
	}
}

// What was sent before the input ended is answered.
func TestStdioAnswersWhatItHasRead(t *testing.T) {
	for _, agent := range []bool{false, true} {
		c, _, _, code := runPipes(t, labEnv())
		go func() {
			if agent {
				c.send(initializeBody)
			}
			for i := range 40 {
				c.send(strings.Replace(rpcCall("say", `{"text":"x"}`, ""), `"id":7`, fmt.Sprintf(`"id":1%02d`, i), 1))
			}
			io.WriteString(c.in, `{"jsonrpc":"2.0","id":"last","method":"tools/list"}`) // without a newline
			c.in.Close()
		}()
		got := map[string]bool{}
		for len(got) < 41 {
			var m struct {
				ID    any
				Error any
			}
			unmarshal(t, c.receive(), &m)
			if m.Error != nil {
				t.Errorf("got %v", m.Error)
			}
			if id := fmt.Sprint(m.ID); id != "1" {
				got[id] = true
			}
		}
		if n := within(t, "the exit", code); n != exitOK || !got["last"] {
			t.Errorf("exit code %d, last answered: %t", n, got["last"])
		}
	}
}

// Lines over the limit, and what else a line may be.
func TestStdioLines(t *testing.T) {
	srv, _ := start(t, labEnv(), Options{MaxMessage: 1000})
	c := pipes(t, srv)
	for _, size := range []int{1001, 5000, writeChunk - 1, writeChunk, 3*writeChunk + 7} {
		want(t, c, strings.Repeat("x", size), "-32600", "a message over 1000 bytes", `"id":null`)
	}
	exact := rpcCall("say", `{"text":"`+strings.Repeat("x", 900)+`"}`, "")
	want(t, c, exact+strings.Repeat(" ", 1000-len(exact)), `"id":7`, `"result"`)
	want(t, c, exact+strings.Repeat(" ", 1001-len(exact)), "-32600")
	for _, blank := range []string{"", "  ", "\r", "\t"} {
		c.send(blank)
	}
	want(t, c, rpcCall("say", `{"text":"x"}`, "")+"\r", `"id":7`, `"result"`)
}

// An author's JSON may have newlines between its tokens; the stream has none.
func TestLinesAreWhole(t *testing.T) {
	var out bytes.Buffer
	w := &lineWriter{out: &out}
	w.write([]byte("{\n\t\"a\": \"b\\n\"\r\n}"))
	if got := out.String(); got != `{"a":"b\n"}`+"\n" {
		t.Errorf("got %q", got)
	}
}

// A client that reads nothing holds the exit up for a moment only.
func TestStdioClientThatReadsNothing(t *testing.T) {
	for name, initialises := range map[string]bool{"bare": false, "agent": true} {
		for how, end := range map[string]func(c *pipeClient, stop func(error)){
			"input":   func(c *pipeClient, _ func(error)) { c.in.Close() },
			"SIGTERM": func(_ *pipeClient, stop func(error)) { stop(ErrDrain) },
		} {
			t.Run(name+"/"+how, func(t *testing.T) {
				t.Parallel()
				env, _, closed := tellingEnv()
				c, stderr, stop, code := runPipes(t, env)
				if initialises {
					become(t, c)
				}
				for range 5 {
					c.send(rpcCall("say", `{"text":"x"}`, ""))
					c.send(`{"jsonrpc":"2.0","id":"p","method":"nosuch"}`)
				}
				begun := time.Now()
				end(c, stop)
				if got := within(t, "the exit", code); got != exitOK {
					t.Errorf("exit code %d: %s", got, stderr)
				}
				within(t, "the environment's end", closed)
				if took := time.Since(begun); took > 3*hurryTime {
					t.Errorf("the exit took %v", took)
				}
			})
		}
	}
}

// A factory that fails is one line and an exit code, and so is a flag that does nothing.
func TestStdioRefusesAWrongStart(t *testing.T) {
	broken := labEnv()
	broken.New = func(context.Context, *gym.Session) (*lab, error) { return nil, errors.New("no GPU") }
	for _, c := range []struct {
		env  gym.Definition
		args []string
		vars map[string]string
		code int
		want string
	}{
		{labEnv(), []string{"-addr", "127.0.0.1:0"}, nil, exitUsage, "-addr makes no sense with -stdio"},
		{labEnv(), []string{"-control-addr", "127.0.0.1:0"}, nil, exitUsage, "-control-addr makes no sense with -stdio"},
		{labEnv(), []string{"-max-sessions", "2"}, nil, exitUsage, "-max-sessions makes no sense with -stdio"},
		{labEnv(), []string{"-grace", "1s"}, nil, exitUsage, "-grace makes no sense with -stdio"},
		{labEnv(), []string{"-mode", "dream"}, nil, exitUsage, "unknown mode"},
		{labEnv(), nil, map[string]string{"OPENENV_MODE": "dream"}, exitUsage, "unknown mode"},
		{labEnv(), nil, map[string]string{"OPENENV_TOOL_TIMEOUT": "soon"}, exitUsage, `invalid value "soon" for OPENENV_TOOL_TIMEOUT`},
		{broken, nil, nil, exitFailed, "error: the environment lab could not be built: no GPU"},
	} {
		var stdout, stderr bytes.Buffer
		code := Run(t.Context(), c.env, append(c.args, "-stdio"), func(k string) string { return c.vars[k] }, strings.NewReader(""), &stdout, &stderr)
		if code != c.code || !strings.Contains(stderr.String(), c.want) || stdout.Len() != 0 {
			t.Errorf("%v: exit code %d, stdout %q, stderr %q; want %q", c.args, code, &stdout, &stderr, c.want)
		}
		if c.code == exitUsage && strings.Count(stderr.String(), "\n") != 1 {
			t.Errorf("%v: stderr %q, want one line", c.args, &stderr)
		}
	}
	// Variables are for other programs too: those of flags that do nothing here may say anything, the others may not.
	var stdout, stderr bytes.Buffer
	vars := map[string]string{"OPENENV_STDIO": "true", "OPENENV_ADDR": "nowhere", "OPENENV_MAX_SESSIONS": "0", "OPENENV_WARM": "three", "OPENENV_GRACE": "-1s",
		"OPENENV_ADVERTISE": "here", "OPENENV_MODE": "production"}
	in := strings.NewReader(rpcCall("say", `{"text":"x"}`, "") + "\n")
	if code := Run(t.Context(), labEnv(), nil, func(k string) string { return vars[k] }, in, &stdout, &stderr); code != exitOK || !strings.Contains(stdout.String(), `"id":7,"result"`) {
		t.Errorf("exit code %d, stdout %q, stderr %q", code, &stdout, &stderr)
	}
}

// Who has standard input is an agent: it cannot make sessions or handles, and reaches no other session.
func TestStdioServesToolsAlone(t *testing.T) {
	srv, _ := start(t, labWith(tools.Modes("fly", "Fly.", tools.Simulation((*lab).say))), counted())
	c := pipes(t, srv)
	for _, method := range []string{"openenv/session/create", "openenv/session/agent", "openenv/session/close", "reset"} {
		want(t, c, `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":{"session_id":"s1"}}`, "-32601")
	}
	want(t, c, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, `"fly"`)
	production, _ := start(t, labWith(tools.Modes("fly", "Fly.", tools.Simulation((*lab).say))), Options{Mode: tools.ModeProduction})
	p := pipes(t, production)
	p.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	if got := p.receive(); strings.Contains(got, `"fly"`) || !strings.Contains(got, `"say"`) {
		t.Errorf("got %s", got)
	}
}

// The example as a child process: the SDK's client, and nothing but JSON on standard output.
func TestStdioProcess(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("signals")
	}
	file := filepath.Join(t.TempDir(), "echo")
	if out, err := exec.Command("go", "build", "-o", file, "github.com/openenv-go/openenv-go/examples/echo").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	echoCommand := func() (cmd *exec.Cmd, stdout, stderr *lines) {
		stdout, stderr = newLines(), newLines()
		cmd = exec.Command(file, "-stdio")
		cmd.Stderr = stderr
		return cmd, stdout, stderr
	}
	t.Run("client", func(t *testing.T) {
		cmd, stdout, stderr := echoCommand()
		cs := connectOver(t, nil, &mcp.LoggingTransport{Transport: &mcp.CommandTransport{Command: cmd}, Writer: stdout})
		res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "echo_message", Arguments: map[string]string{"message": "héllo"}})
		if err != nil || res.IsError || !strings.Contains(jsonOf(t, res), "héllo") {
			t.Errorf("got %v, %v", res, err)
		}
		if err := cs.Close(); err != nil { // it waits for the process
			t.Errorf("%v: %s", err, stderr)
		}
		if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != 0 {
			t.Errorf("the process ended with %v", cmd.ProcessState)
		}
		if !strings.Contains(stdout.String(), "read: ") || !strings.Contains(stderr.String(), "event=session_close") {
			t.Errorf("stdout %s\nstderr %s", stdout, stderr)
		}
	})
	for name, end := range map[string]func(cmd *exec.Cmd, in io.Closer){
		"input":   func(_ *exec.Cmd, in io.Closer) { in.Close() },
		"SIGINT":  func(cmd *exec.Cmd, _ io.Closer) { cmd.Process.Signal(os.Interrupt) },
		"SIGTERM": func(cmd *exec.Cmd, _ io.Closer) { cmd.Process.Signal(syscall.SIGTERM) },
	} {
		t.Run(name, func(t *testing.T) {
			cmd, stdout, stderr := echoCommand()
			cmd.Stdout = stdout
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			for _, text := range []string{rpcCall("add", `{"a":1,"b":2}`, ""), "garbage", initializeBody, `{"jsonrpc":"2.0","id":3,"method":"ping"}`} {
				if _, err := io.WriteString(in, text+"\n"); err != nil {
					t.Fatal(err)
				}
			}
			waitFor(t, "the answers", func() bool { time.Sleep(time.Millisecond); return strings.Count(stdout.String(), "\n") == 4 })
			end(cmd, in)
			if err := cmd.Wait(); err != nil {
				t.Errorf("%v: %s", err, stderr)
			}
			for l := range strings.Lines(stdout.String()) {
				if !json.Valid([]byte(l)) || !strings.HasPrefix(l, "{") {
					t.Errorf("standard output has %q", l)
				}
			}
			for _, event := range []string{"event=session_close", "event=stopped"} {
				if !strings.Contains(stderr.String(), event) {
					t.Errorf("the log lacks %s: %s", event, stderr)
				}
			}
		})
	}
	t.Run("a reader that has gone", func(t *testing.T) {
		cmd, _, stderr := echoCommand()
		in, err := cmd.StdinPipe()
		out, outErr := cmd.StdoutPipe()
		if err := errors.Join(err, outErr, cmd.Start()); err != nil {
			t.Fatal(err)
		}
		out.Close()
		io.WriteString(in, rpcCall("add", `{"a":1,"b":2}`, "")+"\n")
		if err := cmd.Wait(); err != nil || !strings.Contains(stderr.String(), "event=stopped") {
			t.Errorf("%v: %s", err, stderr)
		}
	})
}
