//! The agent against a server that is wrong, forgetful, slow or gone.

mod damaged;
mod egress;
mod hostile;
mod killed;
mod older_server;
mod order;
mod questions;
mod quota;
mod resumed;
mod room;
mod scene;
mod unapplied;

use std::collections::HashMap;
use std::time::{Duration, Instant};

use aptix_client::agent::{AgentError, Approve};
use aptix_engine::digest::sha256;
use aptix_model::wire::v1;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt as _};

use self::scene::{Scene, append, batch, blob, create, eventually, find, id, insert, internal, write};
use crate::fake_server::refusal;
use crate::faults::Fault;

#[tokio::test]
async fn whatever_the_server_sends_is_checked_again() {
    let scene = Scene::set(Approve::Auto);
    let foreign = v1::Batch { workspace_id: "other".to_owned(), ..batch(1, "x.txt", create("x")) };
    let other_bytes = sha256(b"other").to_string();
    scene.server.script.lock().unwrap().blobs.insert(other_bytes.clone(), b"bytes".to_vec());
    let cases = [
        (foreign, "POLICY_DENIED"),
        (batch(2, "../x.txt", create("x")), "INVALID_PATH"),
        (batch(3, ".git/hooks/pre-commit", create("x")), "POLICY_DENIED"),
        (batch(4, "x.txt", None), "INVALID_REQUEST"),
        (batch(5, "x.txt", blob(&sha256(b"never").to_string(), 5)), "BLOB_MISSING"),
        (batch(6, "x.txt", blob(&other_bytes, 5)), "HASH_FAILED"),
        (batch(7, "x.txt", blob(&sha256(b"huge").to_string(), 1 << 40)), "TOO_LARGE"),
        (batch(8, "x.rs", create("```rust\nx\n```\n")), "SUSPECT_CONTENT"),
        (batch(9, "x.txt", append(&"hello\n".repeat(30_001))), "TOO_LARGE"),
    ];
    for (number, (batch, expected)) in (1..).zip(cases) {
        scene.server.send(batch);
        let report = scene.report(usize::try_from(number).unwrap(), number).await;
        assert_eq!(
            (report.outcome(), report.failures[0].reason.as_str()),
            (v1::Outcome::Failed, expected),
            "{report:?}"
        );
    }
    let entries: Vec<_> = std::fs::read_dir(scene.place.path().join("ws")).unwrap().collect();
    assert_eq!(entries.len(), 1, "{entries:?}");
    eventually("every receipt is forgotten", || scene.outbox() == 0).await;
}

/// TUL-002-8.6.7, TUL-004-6.2.3: a report follows its contents, and is repeated until it is taken.
#[tokio::test]
async fn a_report_is_repeated_until_it_is_taken() {
    let scene = Scene::set(Approve::Auto);
    let missing = refusal(Code::FailedPrecondition, "BLOB_MISSING", &[]);
    scene.server.script.lock().unwrap().refuse_report = [internal(), Status::unavailable(""), missing].into();
    scene.server.send(insert(1));
    let report = scene.report(4, 1).await;
    assert_eq!(report.outcome(), v1::Outcome::Applied);
    eventually("the receipt is forgotten", || scene.outbox() == 0).await;
    assert_eq!(scene.file("a.txt"), "1\n2\n");
    let script = scene.server.script.lock().unwrap();
    assert_eq!(script.blobs[report.files[0].sha256()], b"1\n2\n");
    assert!(script.reports.iter().all(|sent| sent.report.as_ref() == Some(&report)), "{:?}", script.reports);
}

/// REQ-PATCH-003.1, REQ-PATCH-003.3: what one batch of a session takes up, a later one puts down, whichever process
/// carries it out; other sessions do not see it.
#[tokio::test]
async fn clipboards_belong_to_the_session_that_a_batch_comes_from() {
    use v1::search_change::Operation;
    let mut scene = Scene::set(Approve::Auto);
    let in_session = |number, session: &str, change: v1::SearchChange| {
        let changes = vec![v1::SearchChange { change_id: id(number), ..change }];
        let action = v1::file_patch::Action::SearchPatch(v1::SearchPatch { changes });
        let origin = Some(v1::Origin { session_id: session.to_owned(), ..v1::Origin::default() });
        v1::Batch { origin, ..batch(number, "a.txt", Some(action)) }
    };
    let cut = v1::SearchChange {
        operation: Some(Operation::Replace(v1::ReplaceText { old_text: "1".to_owned() })),
        new_text: Some("one".to_owned()),
        to_clipboard: Some("c".to_owned()),
        ..v1::SearchChange::default()
    };
    let paste = v1::SearchChange {
        operation: Some(Operation::AppendEof(v1::AppendEof {})),
        from_clipboard: Some("c".to_owned()),
        ..v1::SearchChange::default()
    };
    scene.server.send(in_session(1, "s", cut));
    assert_eq!(scene.report(1, 1).await.outcome(), v1::Outcome::Applied);
    scene.stop().await;
    scene.start(Approve::Auto);
    scene.server.send(in_session(2, "t", paste.clone()));
    assert_eq!(scene.report(2, 2).await.failures[0].reason, "CLIPBOARD_MISSING");
    scene.server.send(in_session(3, "s", paste));
    assert_eq!(scene.report(3, 3).await.outcome(), v1::Outcome::Applied);
    assert_eq!(scene.file("a.txt"), "one\n1");
}

#[tokio::test]
async fn a_late_report_is_dropped() {
    for reason in ["RESULT_FINAL", "NOT_FOUND"] {
        let scene = Scene::set(Approve::Auto);
        let late = refusal(Code::FailedPrecondition, reason, &[]);
        scene.server.script.lock().unwrap().refuse_report = [late].into();
        scene.server.send(insert(1));
        scene.server.send(batch(2, "b.txt", create("")));
        scene.report(2, 2).await;
        eventually("both receipts are forgotten", || scene.outbox() == 0).await;
        assert_eq!(scene.server.script.lock().unwrap().reports.len(), 2, "{reason}");
    }
}

#[tokio::test]
async fn a_lost_lease_is_taken_anew_and_the_report_repeated_under_it() {
    let scene = Scene::set(Approve::Auto);
    let lost = refusal(Code::FailedPrecondition, "LEASE_LOST", &[]);
    scene.server.script.lock().unwrap().refuse_report = [lost].into();
    scene.server.send(insert(1));
    scene.report(2, 1).await;
    let epochs: Vec<_> = scene.server.script.lock().unwrap().reports.iter().map(|report| report.lease_epoch).collect();
    assert_eq!(epochs, [1, 2]);
    assert_eq!(scene.file("a.txt"), "1\n2\n");
}

/// A report the server finds wrong is kept; the batch is not applied again although the server sends it again.
#[tokio::test]
async fn a_refused_report_is_kept_and_its_batch_not_applied_again() {
    let mut scene = Scene::set(Approve::Auto);
    let wrong = refusal(Code::InvalidArgument, "INVALID_REQUEST", &[]);
    scene.server.script.lock().unwrap().refuse_report = [wrong.clone(), wrong.clone(), wrong].into();
    scene.server.send(insert(1));
    scene.server.send(batch(2, "b.txt", create("")));
    scene.server.send(insert(1));
    scene.report(3, 1).await;
    scene.stop().await;
    assert_eq!(scene.file("a.txt"), "1\n2\n");
    scene.start(Approve::Never);
    eventually("everything is reported", || scene.outbox() == 0).await;
    let script = scene.server.script.lock().unwrap();
    let outcomes = script.reports.iter().map(|sent| sent.report.as_ref().unwrap().outcome());
    assert!(outcomes.clone().all(|outcome| outcome == v1::Outcome::Applied), "{:?}", outcomes.collect::<Vec<_>>());
}

/// A server that states how long to wait is called again no earlier, whether it is over a limit or going down.
#[tokio::test]
async fn an_agent_waits_as_long_as_the_server_asks() {
    const ASKED: Duration = Duration::from_secs(2);
    let scene = Scene::set(Approve::Auto);
    let watches = || scene.server.script.lock().unwrap().watched_after.len();
    eventually("it reads", || watches() == 1).await;
    for (number, (code, reason)) in
        [(Code::ResourceExhausted, "OVER_LIMIT"), (Code::Unavailable, "UNAVAILABLE")].into_iter().enumerate()
    {
        let mut details = ErrorDetails::with_error_info(reason, "aptix.dev", HashMap::new());
        details.set_retry_info(Some(ASKED));
        let refused = Status::with_error_details(code, "wait", details);
        scene.server.script.lock().unwrap().refuse_watch = [refused].into();
        let began = Instant::now();
        scene.server.end_watch();
        eventually("it is refused and comes again", || watches() == 3 + 2 * number).await;
        assert!(began.elapsed() >= ASKED, "{reason}: after {:?}", began.elapsed());
    }
}

/// The same batch comes twice before its first report is acknowledged, and again from a server that was set back.
#[tokio::test]
async fn a_batch_that_comes_again_is_not_applied_again_over_what_the_user_wrote() {
    let scene = Scene::set(Approve::Auto);
    let theirs = || batch(1, "a.txt", write("theirs\n", true));
    scene.server.send(theirs());
    scene.report(1, 1).await;
    eventually("the receipt is forgotten", || scene.outbox() == 0).await;
    scene.put("a.txt", "mine\n");
    scene.server.send(theirs());
    scene.server.send(batch(2, "b.txt", create("")));
    scene.report(3, 2).await;
    assert_eq!(scene.file("a.txt"), "mine\n");
    let reports: Vec<_> = scene.server.script.lock().unwrap().reports.iter().map(|sent| sent.report.clone()).collect();
    let again = v1::Report { diff: String::new(), diff_omitted: true, ..reports[0].clone().unwrap() };
    assert!(reports.contains(&Some(again)), "a server that has forgotten the report is sent it again: {reports:?}");
}

/// Nothing else tries the report of a batch that the outbox has no more.
#[tokio::test]
async fn a_report_that_is_sent_again_is_tried_until_the_server_answers() {
    let scene = Scene::set(Approve::Auto);
    let theirs = || batch(1, "a.txt", write("theirs\n", true));
    scene.server.send(theirs());
    scene.report(1, 1).await;
    eventually("the receipt is forgotten", || scene.outbox() == 0).await;
    scene.server.script.lock().unwrap().refuse_report = vec![Status::unavailable(""); 8].into();
    scene.server.send(theirs());
    assert_eq!(scene.report(1 + 8 + 1, 1).await.outcome(), v1::Outcome::Applied);
    assert!(scene.server.script.lock().unwrap().refuse_report.is_empty());
}

/// A server that has forgotten a batch gets a report that it ended, though the first report is gone.
#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "the test removes what the agent kept")]
async fn a_batch_that_comes_again_ends_though_its_report_is_not_kept() {
    let scene = Scene::set(Approve::Auto);
    let theirs = || batch(1, "a.txt", write("theirs\n", true));
    scene.server.send(theirs());
    scene.report(1, 1).await;
    eventually("the receipt is forgotten", || scene.outbox() == 0).await;
    for root in std::fs::read_dir(scene.place.path().join("aptix/roots")).unwrap() {
        std::fs::remove_dir_all(root.unwrap().path().join("reported")).unwrap();
    }
    scene.put("a.txt", "mine\n");
    scene.server.send(theirs());
    let report = scene.report(2, 1).await;
    assert_eq!((report.outcome(), report.failures[0].reason.as_str()), (v1::Outcome::Failed, "RESULT_FINAL"));
    assert_eq!(scene.file("a.txt"), "mine\n");
}

/// What is wrong with this machine for a while is not reported as the end of the batch.
#[tokio::test]
async fn a_batch_waits_out_what_will_pass() {
    let scene = Scene::set_with(Approve::Auto, Fault::FirstExchange(rustix::io::Errno::MFILE));
    scene.server.send(insert(1));
    let report = scene.report(1, 1).await;
    assert_eq!(report.outcome(), v1::Outcome::Applied, "{report:?}");
    assert_eq!(scene.file("a.txt"), "1\n2\n");
}

#[tokio::test]
async fn a_displaced_write_is_found_by_the_agent_and_named_in_the_next_report_about_its_file() {
    use std::io::Write;
    let scene = Scene::set(Approve::Auto);
    let mut old = std::fs::File::options().append(true).open(scene.place.path().join("ws/a.txt")).unwrap();
    scene.server.send(insert(1));
    assert!(scene.report(1, 1).await.files[0].warnings.is_empty());
    old.write_all(b"mine\n").unwrap();
    let roots = scene.place.path().join("aptix/roots");
    let index = std::fs::read_dir(roots).unwrap().next().unwrap().unwrap().path().join("displaced/index-1");
    eventually("it is found", || std::fs::read_to_string(&index).unwrap().contains("\"changed\"")).await;
    assert_eq!(scene.file("a.txt"), "1\n2\n");
    scene.server.send(batch(2, "b.txt", create("b")));
    assert!(scene.report(2, 2).await.files[0].warnings.is_empty(), "the server learns nothing of other files");

    let mut old = std::fs::File::options().append(true).open(scene.place.path().join("ws/b.txt")).unwrap();
    scene.server.send(batch(3, "b.txt", write("new", true)));
    scene.report(3, 3).await;
    old.write_all(b"mine\n").unwrap();
    let is_found = || std::fs::read_to_string(&index).unwrap().matches("\"changed\"").count() == 1;
    eventually("it is found as well", is_found).await;
    scene.server.send(batch(4, "b.txt", write("newer", true)));
    let report = scene.report(4, 4).await;
    let [warning] = report.files[0].warnings.as_slice() else { panic!("{report:?}") };
    assert_eq!(warning.code, "DISPLACED_WRITE");
    let place = scene.place.path().to_str().unwrap();
    assert!(warning.message.contains("b.txt") && !warning.message.contains(place), "{warning:?}");
}

#[tokio::test]
async fn what_is_noticed_after_the_commit_is_reported() {
    let scene = Scene::set_with(Approve::Auto, Fault::LateWrite);
    scene.server.send(insert(1));
    let report = scene.report(1, 1).await;
    assert_eq!(report.outcome(), v1::Outcome::Applied);
    let codes: Vec<_> = report.files[0].warnings.iter().map(|warning| warning.code.as_str()).collect();
    assert_eq!(codes, ["WRITTEN_AFTERWARDS"], "{report:?}");
    assert_eq!(scene.file("a.txt"), "theirs\n");
}

#[tokio::test]
async fn an_event_that_cannot_be_understood_is_passed_over() {
    let mut scene = Scene::set(Approve::Auto);
    scene.server.send(v1::Batch { state: 99, ..insert(1) });
    scene.server.send(v1::Batch { batch_id: "no id".to_owned(), ..insert(1) });
    scene.server.send(batch(2, "b.txt", create("")));
    let report = scene.report(1, 2).await;
    assert_eq!(report.outcome(), v1::Outcome::Applied);
    assert_eq!(scene.server.script.lock().unwrap().watched_after, [0], "one connection is enough");
    scene.stop().await;
    assert_eq!(scene.file("a.txt"), "1\n");
    assert!(find(scene.place.path(), "cursor").ends_with(" 3\n"));
}

#[tokio::test]
async fn a_server_that_gives_no_sign_of_life_is_left() {
    let mut scene = Scene::set(Approve::Auto);
    scene.stop().await;
    scene.server.script.lock().unwrap().stated_interval = Some(std::time::Duration::from_millis(100));
    scene.server.be_alive(false);
    let before = scene.server.script.lock().unwrap().watched_after.len();
    scene.start(Approve::Auto);
    let watched = || scene.server.script.lock().unwrap().watched_after.len() - before;
    eventually("it connects again", || watched() >= 2).await;
    scene.server.be_alive(true);
    scene.server.send(insert(1));
    eventually("it works again", || scene.file("a.txt") == "1\n2\n").await;
}

#[tokio::test]
async fn a_batch_that_was_withdrawn_before_its_turn_is_not_applied() {
    let scene = Scene::set(Approve::Auto);
    scene.server.send(v1::Batch { edit: None, state: v1::BatchState::Cancelled.into(), ..insert(1) });
    scene.server.send(batch(2, "b.txt", create("")));
    scene.report(1, 2).await;
    assert_eq!(scene.file("a.txt"), "1\n");
}

#[tokio::test]
async fn a_second_agent_of_a_root_does_not_start() {
    let mut scene = Scene::set(Approve::Auto);
    eventually("the first serves", || !scene.server.script.lock().unwrap().watched_after.is_empty()).await;
    scene.start(Approve::Auto);
    let second = scene.agents.join_next().await.unwrap().unwrap();
    assert!(matches!(second, Err(AgentError::Served { .. })), "{second:?}");
}

#[tokio::test]
async fn an_agent_that_never_approves_rejects_and_writes_nothing() {
    let scene = Scene::set(Approve::Never);
    scene.server.send(insert(1));
    let report = scene.report(1, 1).await;
    assert_eq!((report.outcome(), report.failures[0].reason.as_str()), (v1::Outcome::Rejected, "REJECTED"));
    assert_eq!(report.failures[0].detail, "NEVER_APPROVES", "no person looked at it");
    assert_eq!(scene.file("a.txt"), "1\n");
}

/// What steers a machine is asked about even where nothing else is; there is no one to ask here.
#[tokio::test]
async fn an_agent_that_approves_everything_asks_about_sensitive_files() {
    let scene = Scene::set(Approve::Auto);
    scene.put("AGENTS.md", "old\n");
    std::os::unix::fs::symlink("AGENTS.md", scene.place.path().join("ws/notes.md")).unwrap();
    let cases = [(".vscode/tasks.json", false), ("sub/agents.md", false), ("AGENTS.md", true), ("notes.md", true)];
    for (number, (path, overwrite)) in (1..).zip(cases) {
        scene.server.send(batch(number, path, write("new\n", overwrite)));
        let report = scene.report(usize::try_from(number).unwrap(), number).await;
        let failure = &report.failures[0];
        assert_eq!((failure.reason.as_str(), failure.path.as_str()), ("APPROVAL_REQUIRED", path), "{report:?}");
        assert_eq!((report.outcome(), failure.detail.as_str()), (v1::Outcome::Failed, "SENSITIVE"));
    }
    scene.server.send(batch(5, "AGENTS.md", write("old\n", true)));
    assert_eq!(scene.report(5, 5).await.outcome(), v1::Outcome::Applied, "an unchanged file needs no approval");
    assert_eq!(scene.file("AGENTS.md"), "old\n");
}

/// Each batch is held to the policy as it is when its turn comes; one that cannot be read closes everything.
#[tokio::test]
async fn a_policy_that_changes_holds_from_the_next_batch_on() {
    let scene = Scene::set(Approve::Auto);
    let cases: [(&str, &str, &str, &str); 7] = [
        ("", "x.txt", "", ""),
        ("deny = [\"*.txt\"]", "y.txt", "POLICY_DENIED", "DENIED"),
        ("alow = []", "y.md", "POLICY_DENIED", "POLICY_FILE"),
        ("allow = [\"AGENTS.md\"]", "AGENTS.md", "", ""),
        ("allow = [\"AGENTS.md\"]\nask = [\"*.md\"]", "sub/AGENTS.md", "APPROVAL_REQUIRED", "LISTED"),
        ("limits = { file_bytes = 3 }", "y.txt", "TOO_LARGE", "FILE"),
        ("limits = { files = 0 }", "y.txt", "TOO_LARGE", "FILES"),
    ];
    for (number, (policy, path, reason, detail)) in (1..).zip(cases) {
        scene.put_policy(policy);
        scene.server.send(batch(number, path, create("new\n")));
        let report = scene.report(usize::try_from(number).unwrap(), number).await;
        let failure = report.failures.first().cloned().unwrap_or_default();
        assert_eq!((failure.reason.as_str(), failure.detail.as_str()), (reason, detail), "{policy}: {report:?}");
    }
}

/// REQ-PATCH-009.3, REQ-PATCH-009.4: the mode is that of the moment a batch is begun.
#[tokio::test]
async fn an_agent_is_restricted_from_the_next_batch_on_until_it_is_not() {
    let scene = Scene::set(Approve::Auto);
    for (number, mode, outcome) in [
        (1, "unrestricted", v1::Outcome::Applied),
        (2, "restricted", v1::Outcome::Failed),
        (3, "unrestricted", v1::Outcome::Applied),
    ] {
        scene.put_policy(&format!("mode = \"{mode}\""));
        scene.server.send(batch(number, &format!("{number}.txt"), create("")));
        let report = scene.report(number as usize, number).await;
        assert_eq!(report.outcome(), outcome, "{report:?}");
        let failure = report.failures.first().cloned().unwrap_or_default();
        let is_refused = (failure.reason.as_str(), failure.detail.as_str()) == ("POLICY_DENIED", "RESTRICTED_MODE");
        assert_eq!(is_refused, outcome == v1::Outcome::Failed, "{failure:?}");
        assert_eq!(scene.place.path().join(format!("ws/{number}.txt")).exists(), !is_refused);
    }
}

/// REQ-PATCH-009.1, REQ-PATCH-009.2: the agent holds a batch to the mode of its session again, whatever its policy is.
#[tokio::test]
async fn a_batch_of_a_restricted_session_is_refused_by_the_agent_too() {
    let scene = Scene::set(Approve::Auto);
    let mut closed = batch(1, "x.txt", create("x\n"));
    closed.session_mode = v1::SessionMode::Restricted.into();
    closed.edit.as_mut().unwrap().required_features = vec!["session_mode".to_owned()];
    scene.server.send(closed);
    let report = scene.report(1, 1).await;
    let words = "Patch tool is disabled in Restricted mode. Use request_mode_upgrade to request write access.";
    assert_eq!((report.outcome(), report.failures[0].message.as_str()), (v1::Outcome::Failed, words));
    assert!(!scene.place.path().join("ws/x.txt").exists());
}

/// What policy allows is not asked about, even by an agent that asks about everything and has no one to ask.
#[tokio::test]
async fn what_policy_allows_is_not_asked_about() {
    let scene = Scene::set(Approve::Ask);
    scene.put_policy("allow = [\"docs/**\"]");
    scene.server.send(batch(1, "docs/x.md", create("")));
    assert_eq!(scene.report(1, 1).await.outcome(), v1::Outcome::Applied);
    scene.server.send(batch(2, "src/x.md", create("")));
    let report = scene.report(2, 2).await;
    assert_eq!((report.outcome(), report.failures[0].reason.as_str()), (v1::Outcome::Failed, "APPROVAL_REQUIRED"));
}

/// WS-MOD-3.2.1, WS-MOD-3.2.2: a batch whose contents do not come keeps those of its own files waiting, and no others.
#[tokio::test]
async fn a_batch_that_waits_holds_up_only_those_of_its_own_files() {
    let scene = Scene::set(Approve::Auto);
    let content = sha256(b"first\n").to_string();
    scene.server.script.lock().unwrap().blobs.insert(content.clone(), b"first\n".to_vec());
    scene.server.send_contents(false);
    scene.server.send(batch(1, "x.txt", blob(&content, 6)));
    scene.server.send(batch(2, "X.txt", write("second\n", true)));
    scene.server.send(batch(3, "y.txt", create("third\n")));
    scene.report(1, 3).await;
    assert_eq!(scene.file("y.txt"), "third\n");
    assert!(!scene.place.path().join("ws/x.txt").exists());
    scene.server.send_contents(true);
    assert_eq!(scene.report(3, 1).await.outcome(), v1::Outcome::Applied);
    assert_eq!(scene.file("x.txt"), "first\n");
}

/// Who lost the lease writes nothing more: what was begun under it is void, and is done when the lease is there again.
#[tokio::test]
async fn a_batch_begun_under_a_lost_lease_is_not_written() {
    let scene = Scene::set(Approve::Auto);
    let content = sha256(b"new\n").to_string();
    scene.server.script.lock().unwrap().blobs.insert(content.clone(), b"new\n".to_vec());
    let held = || refusal(Code::Unavailable, "UNAVAILABLE", &[("detail", "LEASE_HELD")]);
    scene.server.send_contents(false);
    scene.server.send(batch(1, "x.txt", blob(&content, 4)));
    eventually("it reads", || !scene.server.script.lock().unwrap().watched_after.is_empty()).await;
    scene.server.script.lock().unwrap().refuse_watch = [held(), held(), held()].into();
    scene.server.end_watch();
    scene.server.send_contents(true);
    eventually("it asks for the lease", || scene.server.script.lock().unwrap().watched_after.len() >= 3).await;
    assert!(!scene.place.path().join("ws/x.txt").exists());
    assert_eq!(scene.report(1, 1).await.outcome(), v1::Outcome::Applied);
    assert_eq!(scene.file("x.txt"), "new\n");
    assert_eq!(scene.server.script.lock().unwrap().reports[0].lease_epoch, 5, "it is reported under the new lease");
}

/// The agent keeps its name and nothing else in the state directory once all is reported.
#[tokio::test]
async fn an_agent_keeps_its_name() {
    let mut scene = Scene::set(Approve::Auto);
    scene.server.send(insert(1));
    scene.report(1, 1).await;
    scene.stop().await;
    let kept = find(scene.place.path(), "agent-id");
    assert_eq!(kept.lines().last(), Some("agent-1"), "{kept}");
}

#[tokio::test]
async fn a_batch_whose_report_cannot_be_sent_is_refused_before_a_file_is_written() {
    let scene = Scene::set(Approve::Auto);
    let directory = vec!["d".repeat(250); 12].join("/");
    let mut whole = batch(1, "x", create("x"));
    let file = |number: u32| batch(1000 + number, &format!("{directory}/f{number}"), create("x")).edit.unwrap().files;
    whole.edit.as_mut().unwrap().files = (0..1000).flat_map(file).collect();
    scene.server.send(whole);
    let report = scene.report(1, 1).await;
    let reasons: Vec<_> = report.failures.iter().map(|failure| failure.reason.as_str()).collect();
    assert_eq!(reasons, ["TOO_LARGE"], "{report:?}");
    assert!(!scene.place.path().join("ws").join("d".repeat(250)).exists());
}
