package rollcall

import (
	"bufio"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

var startLine = regexp.MustCompile(`http://\S+`)

// testServer is a real server: $ROLLCALL_BIN, by default build/rollcall of this repository.
type testServer struct {
	t       *testing.T
	url     string
	dataDir string
}

func program() string {
	if path := os.Getenv("ROLLCALL_BIN"); path != "" {
		return path
	}
	return "../../build/rollcall"
}

// rollcallCommand runs without ROLLCALL_BIN: the server refuses a ROLLCALL_ variable that is not a setting.
func rollcallCommand(args ...string) *exec.Cmd {
	command := exec.Command(program(), args...)
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "ROLLCALL_BIN=") {
			command.Env = append(command.Env, variable)
		}
	}
	return command
}

func startServer(t *testing.T) *testServer {
	t.Helper()
	dataDir := t.TempDir()
	command := rollcallCommand("serve", "--dev", "--listen", "127.0.0.1:0", "--data-dir", dataDir,
		"--set", "presence.offline_grace_seconds=0", "--set", "presence.min_dwell_ms=0",
		"--set", "gateway.shutdown.drain_timeout_seconds=1")
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGTERM)
		_ = command.Wait()
	})
	for lines := bufio.NewScanner(output); lines.Scan(); {
		if url := startLine.FindString(lines.Text()); url != "" {
			return &testServer{t, url, dataDir}
		}
	}
	t.Fatal("the server did not start")
	return nil
}

func (s *testServer) token(user string, options ...string) string {
	s.t.Helper()
	output, err := rollcallCommand(append([]string{"token", user, "--data-dir", s.dataDir}, options...)...).Output()
	if err != nil {
		s.t.Fatal(err)
	}
	return strings.TrimSpace(string(output))
}
