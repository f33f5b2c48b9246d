//! `ToolService`: the catalogue in each shape, and the guide.

use std::collections::BTreeSet;

use aptix_model::documents::Dialect;
use aptix_model::tools::catalogue::TOOLS;
use aptix_model::tools::guide::guide;
use aptix_model::tools::shape::Shape;
use aptix_model::wire::v1;
use aptix_model::wire::v1::submit_batch_request::Content;
use tonic::{Code, Status};

use crate::server::{Clients, Server, assert_refused, fields, submit};

async fn listed(client: &mut Clients, request: v1::ListToolsRequest) -> Result<Vec<v1::ToolDefinition>, Status> {
    Ok(client.tools.list_tools(request).await?.into_inner().tools)
}

fn asked(tools: &[&str]) -> v1::ListToolsRequest {
    v1::ListToolsRequest { tools: tools.iter().map(|name| (*name).to_owned()).collect(), ..Default::default() }
}

/// TUL-004-3.2.1: the catalogue is the one that `aptix mcp` and `aptix tools` give, in the shape of each provider.
#[tokio::test]
async fn the_tools_are_listed_in_each_shape() {
    let server = Server::start();
    let mut client = server.connect().await;
    for (shape, wire) in [
        (Shape::Mcp, v1::ToolShape::Unspecified),
        (Shape::Mcp, v1::ToolShape::Mcp),
        (Shape::OpenAi, v1::ToolShape::Openai),
        (Shape::Anthropic, v1::ToolShape::Anthropic),
        (Shape::Gemini, v1::ToolShape::Gemini),
    ] {
        for strict in [false, true] {
            let request = v1::ListToolsRequest { shape: wire.into(), strict, ..Default::default() };
            let tools = listed(&mut client, request).await.unwrap();
            let rendered = TOOLS.iter().map(|tool| (tool.name.to_owned(), shape.render(tool, strict).to_string()));
            let tools = tools.into_iter().map(|tool| (tool.name, tool.definition));
            assert_eq!(tools.collect::<Vec<_>>(), rendered.collect::<Vec<_>>(), "{shape} {strict}");
        }
    }
    let chosen = listed(&mut client, asked(&["undo", "read_file"])).await.unwrap();
    let kinds: Vec<_> = chosen.iter().map(|tool| (tool.name.as_str(), tool.kind())).collect();
    assert_eq!(kinds, [("undo", v1::ToolKind::Write), ("read_file", v1::ToolKind::Read)]);
    let core = listed(&mut client, asked(&["core"])).await.unwrap();
    assert!(core.len() < TOOLS.len() && core.iter().map(|tool| tool.definition.len()).sum::<usize>() <= 16 << 10);
}

/// A call whose arguments are a document is submitted as it came.
#[tokio::test]
async fn arguments_that_are_a_document_can_be_submitted() {
    let server = Server::start();
    let mut client = server.connect().await;
    let tools = listed(&mut client, asked(&["all"])).await.unwrap();
    let taken: BTreeSet<_> = tools.iter().map(|tool| tool.dialect.as_str()).filter(|name| !name.is_empty()).collect();
    let arguments = [
        ("workspace_create_file", r#"{"path":"a.txt","content":"one\n","overwrite":null,"contentFormat":""}"#),
        ("patch", r#"{"path":"a.txt","patches":[{"operation":"append_eof","newText":"two\n"}]}"#),
        (
            "apply_structured_patch",
            r#"{"patches":[{"path":"a.txt","replacements":"[{\"find\":\"a\",\"replace\":\"b\"}]"}]}"#,
        ),
        (
            "apply_file_bundle",
            r#"{"files":[{"path":"b.txt","operation":"delete","content":null,"contentFormat":null}]}"#,
        ),
        (
            "str_replace_based_edit_tool",
            r#"{"command":"str_replace","path":"a.txt","old_str":"a","new_str":"b","insert_line":0}"#,
        ),
    ];
    assert_eq!(taken.len(), arguments.len() + 1, "and line patches: {taken:?}");
    for (name, text) in arguments {
        let tool = tools.iter().find(|tool| tool.name == name).unwrap();
        let document = v1::Document { dialect: tool.dialect.clone(), text: text.as_bytes().to_vec().into() };
        let content = Some(Content::Document(document));
        let stored = client.submit(v1::SubmitBatchRequest { content, ..submit("w", name, Vec::new()) }).await.unwrap();
        assert_eq!(stored.edit.unwrap().files.len(), 1, "{name}");
    }
}

#[tokio::test]
async fn the_guide_is_the_one_that_is_printed() {
    let server = Server::start();
    let mut client = server.connect().await;
    let ask = |dialect: &str| v1::GetGuidanceRequest { dialect: dialect.to_owned() };
    for dialect in [None, Some(Dialect::LinePatch), Some(Dialect::Chat)] {
        let name = dialect.map(|dialect| dialect.to_string()).unwrap_or_default();
        let answer = client.tools.get_guidance(ask(&name)).await.unwrap().into_inner();
        assert_eq!(answer.text, guide(dialect));
        assert!(answer.text.len() <= 64 << 10);
    }
    let refused = client.tools.get_guidance(ask("cobol")).await;
    assert_eq!(fields(refused.as_ref().unwrap_err()), ["dialect"]);
    assert_refused(refused, Code::InvalidArgument, "INVALID_REQUEST", "UNKNOWN_ENUM");
}

#[tokio::test]
async fn what_chooses_no_tool_is_refused() {
    let server = Server::start();
    let mut client = server.connect().await;
    let unknown = v1::ListToolsRequest { shape: 99, ..Default::default() };
    for (request, reason, detail) in [
        (asked(&["read_fil"]), "INVALID_REQUEST", "UNKNOWN_OPERATION"),
        (asked(&[""]), "INVALID_REQUEST", "UNKNOWN_OPERATION"),
        (unknown, "INVALID_REQUEST", "UNKNOWN_ENUM"),
        (asked(&["core"; 101]), "TOO_LARGE", "TEXT"),
    ] {
        assert_refused(listed(&mut client, request).await, Code::InvalidArgument, reason, detail);
    }
}
