// Gives a model the tools of a workspace: dotnet run -- http://HOST:PORT WORKSPACE PATH
//
// The model is a script: put a call of your provider in place of `Model`. It reads a file, has its first line marked, and then
// patches the version that it read. That is refused, because the file has changed since; the refusal names the call to make
// instead, and the model makes it.
using System.Text.Json.Nodes;
using Aptix.V1;
using Google.Protobuf;
using Grpc.Net.Client;

if (args is not [var server, var workspace, var path])
{
    Console.Error.WriteLine("usage: tool-loop http://HOST:PORT WORKSPACE PATH");
    return 2;
}
using var channel = GrpcChannel.ForAddress(server);
var service = new ToolService.ToolServiceClient(channel);
var origin = new Origin { SessionId = Guid.NewGuid().ToString() };

var asked = new ListToolsRequest { Shape = ToolShape.Openai };
asked.Tools.Add("core");
// A provider is given the definitions beside the messages.
var tools = (await service.ListToolsAsync(asked)).Tools;
Console.WriteLine($"{tools.Count} tools: {string.Join(", ", tools.Select(tool => tool.Name))}");

var heard = new List<JsonNode>();
while (Model(heard) is var (tool, arguments))
{
    heard.Add(await CarryOut(tool, arguments));
}
Console.WriteLine(heard[^1]["result"]?["diff"]);
return 0;

// Forwards a call as the model wrote it. While its batch waits, the same call goes on waiting.
async Task<JsonNode> CarryOut(string tool, JsonNode arguments)
{
    var request = new CallToolRequest
    {
        WorkspaceId = workspace,
        Tool = tool,
        Arguments = ByteString.CopyFromUtf8(arguments.ToJsonString()),
        RequestId = Guid.NewGuid().ToString(),
        Origin = origin,
    };
    while (true)
    {
        var answer = await service.CallToolAsync(request, deadline: DateTime.UtcNow.AddMinutes(1));
        var structured = JsonNode.Parse(answer.Structured)!;
        var error = (structured["errors"] as JsonArray)?.FirstOrDefault();
        Console.WriteLine($"{tool} {(answer.IsError ? "was refused" : "was done")} {error?["code"]}");
        if ((string?)error?["detail"] != "PENDING")
        {
            return structured;
        }
    }
}

// What a provider answers to what the tools answered so far: the next call, or none at the end.
(string Tool, JsonNode Arguments)? Model(List<JsonNode> heard)
{
    if (heard.Count == 0)
    {
        return ("read_file", new JsonObject { ["path"] = path });
    }
    var lines = ((string)heard[0]["text"]!).Split('\n');
    switch (heard.Count)
    {
        case 1:
            return ("edit", new JsonObject { ["file_path"] = path, ["old_string"] = lines[0], ["new_string"] = $"{lines[0]} (first)" });
        case 2:
            var change = new JsonObject
            {
                ["operation"] = "replace",
                ["startLine"] = 2,
                ["endLine"] = 2,
                ["expectedOriginalLines"] = new JsonArray(lines[1]),
                ["newLines"] = new JsonArray($"{lines[1]} (second)"),
            };
            var file = new JsonObject
            {
                ["docPath"] = (string?)heard[0]["docPath"],
                ["originalSha256"] = (string?)heard[0]["sha256"],
                ["changes"] = new JsonArray(change),
            };
            return ("workspace_write_patch", new JsonObject { ["files"] = new JsonArray(file) });
    }
    var action = (heard[^1]["errors"] as JsonArray)?.FirstOrDefault()?["nextAction"];
    return action is null ? null : ((string)action["tool"]!, action["arguments"]!.DeepClone());
}
