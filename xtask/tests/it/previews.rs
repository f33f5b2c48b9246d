//! What would become of a batch, asked of a real agent by a submit that only validates.

use aptix_model::wire::v1;
use aptix_model::wire::v1::batch_service_client::BatchServiceClient;
use aptix_model::wire::v1::submit_batch_request::Content;

use crate::documents::create;
use crate::processes::{Machine, Server, connected, eventually, wait_until_served};

const DIFF: &str = "--- a/greeting.txt\n+++ b/greeting.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+three\n";
const STALE: &str = "--- a/greeting.txt\n+++ b/greeting.txt\n@@ -1,2 +1,2 @@\n one\n-four\n+three\n";

fn validated(server: &Server, text: &str) -> v1::SubmitBatchResponse {
    let document = v1::Document { dialect: String::new(), text: text.to_owned().into() };
    let request = v1::SubmitBatchRequest {
        workspace_id: "demo".to_owned(),
        request_id: "preview".to_owned(),
        validate_only: true,
        content: Some(Content::Document(document)),
        ..v1::SubmitBatchRequest::default()
    };
    let (runtime, channel) = connected(server);
    runtime.block_on(BatchServiceClient::new(channel).submit_batch(request)).unwrap().into_inner()
}

/// The preview says what an apply would; nothing is written or stored, and without an agent there is none.
#[test]
fn what_would_become_of_a_document_is_asked_of_the_agent() {
    let machine = Machine::new();
    machine.put("greeting.txt", "one\ntwo\n");
    let before = machine.files();
    let server = machine.server();
    assert_eq!(validated(&server, DIFF).preview, None);
    let agent = machine.agent(&server);
    wait_until_served(&server);

    let preview = validated(&server, DIFF).preview.unwrap();
    assert_eq!(preview.outcome(), v1::Outcome::Applied, "{preview:?}");
    assert!(preview.diff.contains("-two\n+three\n"), "{}", preview.diff);
    assert_eq!(preview.files[0].path, "greeting.txt");

    let refused = validated(&server, STALE).preview.unwrap();
    assert_eq!(refused.outcome(), v1::Outcome::Failed, "{refused:?}");
    let failure = &refused.failures[0];
    assert_eq!((failure.reason.as_str(), failure.path.as_str()), ("EXPECTED_MISMATCH", "greeting.txt"), "{failure:?}");
    assert!(!failure.field.contains("changes["), "a diff has no list of changes: {failure:?}");
    assert!(!failure.nearest.is_empty() && failure.current_sha256.is_some(), "{failure:?}");

    drop(agent);

    let _never = machine.agent_that(&server, "never");
    eventually("the next agent answers", || validated(&server, DIFF).preview.is_some());
    assert_eq!(validated(&server, DIFF).preview.unwrap().outcome(), v1::Outcome::Rejected);
    assert_eq!(machine.files(), before);
}

/// `SHA_MISMATCH` names the digest and where it is from: the server's copy while no agent serves, the disk while one does. A
/// batch that is stored is decided by the disk alone.
#[test]
fn a_stale_digest_is_answered_with_the_current_one_and_its_source() {
    let machine = Machine::new();
    let server = machine.server();
    let mut agent = machine.agent(&server);
    let (made, _) = machine.submit(&server, &create("greeting.txt", "one\n"));
    let digest = |text: &str| aptix_engine::digest::sha256(text.as_bytes()).to_string();
    let patch = |before: &str| {
        format!(
            r#"{{"files": [{{"docPath": "project/greeting.txt", "originalSha256": "{}", "changes": [{{"operation":
            "insert", "afterLine": 0, "newLines": ["zero"]}}]}}]}}"#,
            digest(before)
        )
    };
    let mismatch = |patch: &str| {
        let preview = validated(&server, patch).preview.unwrap();
        let [failure] = &preview.failures[..] else { panic!("{preview:?}") };
        assert_eq!(failure.reason, "SHA_MISMATCH", "{failure:?}");
        failure.clone()
    };
    assert_eq!(agent.terminate(), Some(0));
    machine.put("greeting.txt", "two\n");

    assert_eq!(validated(&server, &patch("one\n")).preview, None, "it fits the copy");
    let early = mismatch(&patch("two\n"));
    assert_eq!((early.current_sha256(), early.current_source()), (digest("one\n").as_str(), v1::Source::Cloud));
    assert_eq!(made["batchId"], early.current_batch_id.as_str());
    assert!(early.current_time.is_some());

    let request = ["submit", "--workspace", "demo", "--server", &server.url(), "two.json"];
    crate::processes::write(&machine.path("two.json"), &patch("two\n"));
    assert!(machine.aptix(&request).output().unwrap().status.success(), "the copy refuses no batch");

    let _agent = machine.agent(&server);
    eventually("the batch is applied", || machine.files() == [("greeting.txt".to_owned(), "zero\ntwo\n".to_owned())]);
    let live = mismatch(&patch("one\n"));
    assert_eq!((live.current_sha256(), live.current_source()), (digest("zero\ntwo\n").as_str(), v1::Source::Active));
    assert_eq!((live.current_time, live.current_batch_id.as_str()), (None, ""));
}
