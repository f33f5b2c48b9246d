// Gives a model the tools of a workspace: tool-loop HOST:PORT WORKSPACE PATH
//
// The model is a script: put a call of your provider in place of `model`. It reads a file, has its first line marked, and then
// patches the version that it read. That is refused, because the file has changed since; the refusal names the call to make
// instead, and the model makes it.
package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"strings"
	"time"

	aptixv1 "aptix.dev/aptix/v1"
	"google.golang.org/grpc"
)

// Call is what a model asks for: a tool, and its arguments as a JSON text.
type Call struct {
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
}

// Structured is the answer of a tool for programs, as far as this script reads it.
type Structured struct {
	DocPath string
	Sha256  string
	Text    string
	Errors  []struct {
		Code, Detail string
		NextAction   *Call
	}
	Result *struct{ Diff string }
}

func main() {
	log.SetFlags(0)
	if len(os.Args) != 4 {
		log.Fatal("usage: tool-loop HOST:PORT WORKSPACE PATH")
	}
	server, workspace, path := os.Args[1], os.Args[2], os.Args[3]
	connection, err := grpc.Dial(server, grpc.WithInsecure())
	check(err)
	defer connection.Close()
	service := aptixv1.NewToolServiceClient(connection)

	asked := &aptixv1.ListToolsRequest{Shape: aptixv1.ToolShape_TOOL_SHAPE_GEMINI, Tools: []string{"core"}}
	listed, err := service.ListTools(context.Background(), asked)
	check(err)
	// A provider is given the definitions beside the messages.
	names := make([]string, 0, len(listed.Tools))
	for _, tool := range listed.Tools {
		names = append(names, tool.Name)
	}
	fmt.Printf("%d tools: %s\n", len(names), strings.Join(names, ", "))

	var heard []Structured
	for call := model(path, heard); call != nil; call = model(path, heard) {
		heard = append(heard, carryOut(service, workspace, call))
	}
	fmt.Println(heard[len(heard)-1].Result.Diff)
}

// carryOut forwards a call as the model wrote it. While its batch waits, the same call goes on waiting.
func carryOut(service aptixv1.ToolServiceClient, workspace string, call *Call) Structured {
	request := &aptixv1.CallToolRequest{
		WorkspaceId: workspace, Tool: call.Tool, Arguments: call.Arguments, RequestId: unique(),
		Origin: &aptixv1.Origin{SessionId: "tool-loop"},
	}
	for {
		deadline, cancel := context.WithTimeout(context.Background(), time.Minute)
		answer, err := service.CallTool(deadline, request)
		cancel()
		check(err)
		var structured Structured
		check(json.Unmarshal([]byte(answer.Structured), &structured))
		if len(structured.Errors) == 0 {
			fmt.Println(call.Tool, "was done")
			return structured
		}
		fmt.Println(call.Tool, "was refused", structured.Errors[0].Code)
		if structured.Errors[0].Detail != "PENDING" {
			return structured
		}
	}
}

// model answers as a provider does to what the tools answered so far: the next call, or none at the end.
func model(path string, heard []Structured) *Call {
	if len(heard) == 0 {
		return use("read_file", object{"path": path})
	}
	read, last := heard[0], heard[len(heard)-1]
	lines := strings.Split(read.Text, "\n")
	switch {
	case len(heard) == 1:
		return use("edit", object{"file_path": path, "old_string": lines[0], "new_string": lines[0] + " (first)"})
	case len(heard) == 2:
		change := object{
			"operation": "replace", "startLine": 2, "endLine": 2,
			"expectedOriginalLines": []string{lines[1]}, "newLines": []string{lines[1] + " (second)"},
		}
		file := object{"docPath": read.DocPath, "originalSha256": read.Sha256, "changes": []object{change}}
		return use("workspace_write_patch", object{"files": []object{file}})
	case len(last.Errors) > 0:
		return last.Errors[0].NextAction
	default:
		return nil
	}
}

type object = map[string]any

func use(tool string, arguments object) *Call {
	text, err := json.Marshal(arguments)
	check(err)
	return &Call{tool, text}
}

// unique makes a request id.
func unique() string {
	bytes := make([]byte, 16)
	_, err := rand.Read(bytes)
	check(err)
	return hex.EncodeToString(bytes)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
