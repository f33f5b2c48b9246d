//! What an agent replies to the questions of its server.

use std::cell::Cell;
use std::time::Duration;

use aptix_client::agent::FromDisk;
use aptix_client::apply::proposal::Decision;
use aptix_client::apply::{ApplyOptions, Mode, apply};
use aptix_client::connection::question::{Answering, Wanted};
use aptix_engine::digest::sha256;
use aptix_model::batch::{Batch, FileEdit, FilePatch, Target};
use aptix_model::question::Question;
use aptix_model::reason::Reason;
use aptix_model::wire::v1;
use aptix_model::wire::v1::answer::Answer;
use tokio_util::sync::CancellationToken;

use super::Scene;

fn reply_within(scene: &Scene, time: Duration, ask: v1::question::Ask) -> Answer {
    let wanted = Wanted::for_time(time, CancellationToken::new());
    match Question::try_from(ask) {
        Ok(question) => FromDisk::default().answer(&scene.workspace, &scene.policies, &question, &wanted).0,
        Err(failures) => Answer::Failure(failures[0].clone().into()),
    }
}

fn reply(scene: &Scene, ask: v1::question::Ask) -> Answer {
    reply_within(scene, Duration::from_secs(60), ask)
}

fn by_path(path: &str) -> v1::FileSelector {
    v1::FileSelector { file: Some(v1::file_selector::File::Path(path.to_owned())) }
}

fn read(paths: &[&str]) -> v1::question::Ask {
    let files = paths.iter().map(|path| v1::FilePart { file: Some(by_path(path)), range: None }).collect();
    v1::question::Ask::ReadFiles(v1::ReadFilesRequest { files, ..Default::default() })
}

fn stat(paths: &[&str]) -> v1::question::Ask {
    let files = paths.iter().map(|path| by_path(path)).collect();
    v1::question::Ask::StatFiles(v1::StatFilesRequest { files, ..Default::default() })
}

fn failure(answer: Answer) -> (String, String) {
    let Answer::Failure(failure) = answer else { panic!("no failure: {answer:?}") };
    (failure.reason, failure.detail)
}

/// Every question that the agent says it answers gets an answer of its kind, from the disk.
#[test]
fn each_kind_of_question_gets_its_kind_of_answer() {
    let scene = Scene::set();
    scene.put("src/A.rs", "one\ntwo\n");
    let Answer::ReadFiles(answer) = reply(&scene, read(&["src/A.rs", "nowhere", ".git/config"])) else { panic!() };
    let results: Vec<_> = answer.results.into_iter().map(|result| result.result.unwrap()).collect();
    let [
        v1::file_result::Result::File(file),
        v1::file_result::Result::Failure(missing),
        v1::file_result::Result::Failure(closed),
    ] = results.as_slice()
    else {
        panic!("{results:?}")
    };
    assert_eq!(file.content(), b"one\ntwo\n");
    let state = file.file.as_ref().unwrap();
    assert_eq!(
        (state.sha256.as_str(), state.source()),
        (sha256(b"one\ntwo\n").to_string().as_str(), v1::Source::Active)
    );
    assert_eq!((missing.reason.as_str(), missing.path.as_str()), ("NOT_FOUND", "nowhere"));
    assert_eq!((closed.reason.as_str(), closed.detail.as_str()), ("POLICY_DENIED", "PROTECTED"));

    let Answer::StatFiles(answer) = reply(&scene, stat(&["src/A.rs"])) else { panic!() };
    let Some(v1::file_result::Result::File(described)) = &answer.results[0].result else { panic!("{answer:?}") };
    assert_eq!((described.file.as_ref(), described.content.as_ref()), (Some(state), None));

    let Answer::ListFiles(list) = reply(&scene, v1::question::Ask::ListFiles(v1::ListFilesRequest::default())) else {
        panic!()
    };
    assert_eq!(list.files.iter().map(|file| file.path.as_str()).collect::<Vec<_>>(), ["src/A.rs"]);

    let search = v1::SearchFilesRequest { pattern: "^t".to_owned(), ..Default::default() };
    let Answer::SearchFiles(found) = reply(&scene, v1::question::Ask::SearchFiles(search)) else { panic!() };
    assert_eq!((found.matches[0].doc_path.as_str(), found.matches[0].line), ("ws/src/a.rs", 2));

    let kinds: Vec<_> = FromDisk::default().kinds().iter().map(|kind| kind.feature()).collect();
    assert_eq!(kinds, ["read", "stat", "list", "search", "preview", "prepare", "call_tool", "resolve_paths"]);
}

/// What a server should have refused, and a caller that has gone, get a failure of a name.
#[test]
fn a_bad_question_gets_a_failure() {
    let scene = Scene::set();
    scene.put("a", "");
    assert_eq!(failure(reply(&scene, read(&["../a"]))), ("INVALID_PATH".to_owned(), "TRAVERSAL".to_owned()));
    assert_eq!(failure(reply(&scene, read(&[]))).0, "INVALID_REQUEST");
    assert_eq!(failure(reply(&scene, stat(&["a"; 1001]))).0, "TOO_LARGE");
    assert_eq!(failure(reply_within(&scene, Duration::ZERO, read(&["a"]))).0, "DEADLINE_EXCEEDED");
    scene.put_policy("deny = [");
    let (reason, detail) = failure(reply(&scene, read(&["a"])));
    assert_eq!((reason.as_str(), detail.as_str()), ("POLICY_DENIED", "POLICY_FILE"));
    let shown = format!("{:?}", reply(&scene, read(&["a"])));
    assert!(!shown.contains(scene.place.path().to_str().unwrap()), "{shown}");
}

fn preview(scene: &Scene, path: &str, action: v1::file_patch::Action) -> v1::Report {
    let target = Some(v1::file_patch::Target::Path(path.to_owned()));
    let file = v1::FilePatch { target, action: Some(action), ..v1::FilePatch::default() };
    let edit = v1::Edit { files: vec![file], ..v1::Edit::default() };
    let Answer::Preview(report) = reply(scene, v1::question::Ask::Preview(edit)) else { panic!("no report") };
    report
}

fn write(text: &str) -> v1::file_patch::Action {
    let content = Some(v1::create_file::Content::Text(text.to_owned()));
    v1::file_patch::Action::CreateFile(v1::CreateFile { content, overwrite: true, content_format: None })
}

fn line_patch(text: &str) -> v1::file_patch::Action {
    let operation = v1::change::Operation::Insert(v1::InsertLines { after_line: 0, new_lines: vec!["new".to_owned()] });
    let change = v1::Change { operation: Some(operation), ..v1::Change::default() };
    let original_sha256 = sha256(text.as_bytes()).to_string();
    v1::file_patch::Action::LinePatch(v1::LinePatch { original_sha256, changes: vec![change] })
}

/// A preview is the report that the batch would have; nothing is written, nor kept.
#[test]
fn a_preview_reports_and_writes_nothing() {
    let scene = Scene::set();
    scene.put("a.txt", "old\n");
    let kept = || walk(scene.place.path());
    let before = kept();
    let report = preview(&scene, "a.txt", line_patch("old\n"));
    assert_eq!((report.outcome(), report.files[0].status()), (v1::Outcome::Applied, v1::FileStatus::Modified));
    assert!(report.diff.contains("+new\n old\n"), "{}", report.diff);
    assert_eq!(report.files[0].sha256(), sha256(b"new\nold\n").to_string());
    let report = preview(&scene, "a.txt", line_patch("other\n"));
    assert_eq!((report.outcome(), report.failures[0].reason.as_str()), (v1::Outcome::Failed, "SHA_MISMATCH"));
    assert_eq!(report.failures[0].current_sha256(), sha256(b"old\n").to_string());
    // A file that a person has to agree to: the preview says so.
    let report = preview(&scene, ".github/workflows/x.yml", write("on: push\n"));
    assert_eq!((report.outcome(), report.warnings[0].code.as_str()), (v1::Outcome::Applied, "APPROVAL_REQUIRED"));
    assert_eq!(kept(), before);
    scene.put_policy("mode = 'restricted'");
    let report = preview(&scene, "a.txt", line_patch("old\n"));
    assert_eq!(
        (report.failures[0].reason.as_str(), report.failures[0].detail.as_str()),
        ("POLICY_DENIED", "RESTRICTED_MODE")
    );
}

/// A preview shows of a file what the report of the batch would: nothing of one that is withheld.
#[test]
fn a_preview_shows_nothing_that_is_withheld() {
    let scene = Scene::set();
    scene.put(".gitignore", "ignored.txt\n");
    scene.put("ignored.txt", "zebra\n");
    let right = preview(&scene, "ignored.txt", line_patch("zebra\n"));
    assert_eq!(
        (right.failures[0].reason.as_str(), right.failures[0].detail.as_str()),
        ("APPROVAL_REQUIRED", "WITHHELD")
    );
    assert_eq!(preview(&scene, "ignored.txt", line_patch("other\n")), right, "whether it fits is not said");
    let same = preview(&scene, "ignored.txt", write("zebra\n"));
    let other = preview(&scene, "ignored.txt", write("other\n"));
    for report in [&same, &other] {
        let file = &report.files[0];
        assert_eq!(
            (file.withheld.as_str(), file.status(), report.diff.as_str()),
            ("ignored", v1::FileStatus::Modified, "")
        );
        assert_eq!(file.sha256_before, None);
    }
    assert_eq!(same.warnings, other.warnings);
}

/// The plan of an edit at an anchor.
fn prepared(scene: &Scene, path: &str, place: v1::anchor_edit::Place) -> v1::Plan {
    let edit = v1::AnchorEdit { place: Some(place), content: "new\n".to_owned(), ..v1::AnchorEdit::default() };
    let target = Some(v1::file_patch::Target::Path(path.to_owned()));
    let action = Some(v1::file_patch::Action::AnchorEdit(edit));
    let file = v1::FilePatch { target, action, ..v1::FilePatch::default() };
    let edit = Some(v1::Edit { files: vec![file], ..v1::Edit::default() });
    let question = v1::question::Ask::Prepare(v1::PrepareQuestion { edit, origin: None });
    let Answer::Prepare(plan) = reply(scene, question) else { panic!("no plan") };
    plan
}

/// WS-MOD-5.2.1: a plan shows the place of an edit at an anchor, before and after; nothing of a file that is withheld.
#[test]
fn a_plan_shows_the_place_of_an_edit_unless_it_is_withheld() {
    let scene = Scene::set();
    scene.put("a.txt", "1\n\n3\n4\n");
    let range = v1::LineSpan { start_line: 3, end_line: Some(3) };
    let plan = prepared(&scene, "a.txt", v1::anchor_edit::Place::Range(range));
    let shown = plan.files[0].evidence.clone().unwrap();
    let (before, after) = (shown.before.unwrap(), shown.after.unwrap());
    assert_eq!((shown.old_lines, before.above.as_str(), before.range.as_str()), (1, "1\n\n", "3\n"));
    assert_eq!((after.range.as_str(), after.below.as_str(), after.left_out), ("new\n", "4\n", 0));
    assert_eq!(shown.blank_lines.unwrap().file_above, 1);
    scene.put_policy("excerpts = \"after_approval\"\n");
    let plan = prepared(&scene, "a.txt", v1::anchor_edit::Place::Range(range));
    let failure = &plan.report.unwrap().failures[0];
    assert_eq!((failure.reason.as_str(), failure.detail.as_str()), ("APPROVAL_REQUIRED", "WITHHELD"));
    assert!(plan.files.is_empty(), "{:?}", plan.files);
}

/// Every file below a directory, with its bytes.
fn walk(directory: &std::path::Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut pending = vec![directory.to_owned()];
    while let Some(directory) = pending.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                pending.push(path);
            } else {
                let bytes = std::fs::read(&path).unwrap();
                found.push((path, bytes));
            }
        }
    }
    found.sort();
    found
}

/// A preview looks before each file whether its caller waits, and reads no more once it does not.
#[test]
fn a_preview_ends_with_its_caller() {
    let scene = Scene::set();
    let file = |number: u32| {
        let target = Target::Path(format!("{number}.txt"));
        FilePatch { target, key: None, label: None, edit: FileEdit::DeleteFile }
    };
    (0..4).for_each(|number| scene.put(&format!("{number}.txt"), ""));
    let batch = Batch { files: (0..10).map(file).collect(), ..Batch::default() };
    let policy = scene.policies.read(&scene.workspace).unwrap();
    let looked = Cell::new(0);
    let is_over = || {
        looked.set(looked.get() + 1);
        looked.get() > 4
    };
    let options = ApplyOptions::new(&policy, Mode::Preview { is_over: &is_over });
    let refused = apply(&scene.workspace, &batch, options, &mut |_| Decision::Apply).unwrap_err();
    let found: Vec<_> = refused.failures.iter().map(|failure| (failure.file_index, failure.reason)).collect();
    let expected: Vec<_> = (4..10).map(|index| (Some(index), Reason::DeadlineExceeded)).collect();
    assert_eq!(found, expected, "the others were not looked for");

    let edit = v1::Edit::from(batch);
    let Answer::Preview(report) = reply_within(&scene, Duration::ZERO, v1::question::Ask::Preview(edit)) else {
        panic!("no report")
    };
    assert_eq!((report.failures.len(), report.failures[0].reason.as_str()), (10, "DEADLINE_EXCEEDED"));
}
