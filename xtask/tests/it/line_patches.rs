//! Line patches (TUL-002) over gRPC: each document is submitted to a real server as its author wrote it, and a real agent applies
//! it. The scenarios are those of `aptix apply` in the client's tests, and have the same outcomes here. Scenarios with roots,
//! flags or a policy of their own are left out.

mod scenario;
pub(crate) mod scene;

use aptix_model::limits::MESSAGE_BYTES;
use aptix_model::wire::v1;
use aptix_model::wire::v1::change::Operation;
use aptix_model::wire::v1::file_patch::Action;
use serde_json::{Value, json};

use self::scenario::{Outcome, cases};
use self::scene::{Scene, outcome};
use crate::scenario_text::{Part, Scenario, document, parse, unescaped};

const SCENARIOS: [&str; 5] = [
    include_str!("../../../crates/aptix-client/tests/it/scenarios/line_patch.txt"),
    include_str!("../../../crates/aptix-client/tests/it/scenarios/bytes.txt"),
    include_str!("../../../crates/aptix-client/tests/it/scenarios/paths.txt"),
    include_str!("../../../crates/aptix-client/tests/it/scenarios/documents.txt"),
    include_str!("../../../crates/aptix-client/tests/it/scenarios/violations.txt"),
];

/// Differs by design: a server refuses what it finds wrong by itself, and never asks the agent what else is.
const FOUND_APART: &str = "a path that is not clear hides no broken rule of another file";

fn is_as_expected(found: &Outcome, expected: &Outcome) -> bool {
    let is_same =
        |(found, expected): (&String, &String)| found == expected || expected.starts_with(&format!("{found} "));
    found.len() == expected.len() && found.iter().zip(expected).all(is_same)
}

/// What is wrong with a scenario's outcome, or nothing.
fn tried(scene: &mut Scene, number: usize, parts: &[Part], expected: Outcome) -> Vec<String> {
    scene.lay_out(parts);
    let mut after = scene.tree();
    let text = &parts.iter().find(|part| part.word == "document").unwrap().body;
    let text = document(text, &scene.machine.path("."));
    // No message holds it; nothing changes.
    let expected = if text.len() > MESSAGE_BYTES { vec!["TOO_LARGE MESSAGE".to_owned()] } else { expected };
    let found = outcome(&scene.submit(&number.to_string(), text));
    let mut wrong = Vec::new();
    if !is_as_expected(&found, &expected) {
        wrong.push(format!("found {found:?}, expected {expected:?}"));
    }
    for part in parts.iter().filter(|part| part.word == "after" && expected.is_empty()) {
        let place = scene.place(&part.rest);
        after.retain(|(path, _)| *path != place);
        after.push((place, unescaped(&part.body)));
    }
    after.sort();
    if scene.tree() != after {
        wrong.push(format!("the files are not as expected: {:?}", scene.tree()));
    }
    wrong
}

/// Each scenario of line patches, over gRPC:
/// TUL-002-3.1 TUL-002-3.2 TUL-002-4.1.3 TUL-002-4.1.4 TUL-002-4.2.1 TUL-002-4.2.2 TUL-002-4.2.4 TUL-002-4.2.6 TUL-002-4.2.8
/// TUL-002-4.2.9 TUL-002-5.0.1 TUL-002-5.1.1 TUL-002-5.1.2 TUL-002-5.1.4 TUL-002-5.1.6 TUL-002-5.1.7 TUL-002-5.2.1
/// TUL-002-5.2.2 TUL-002-5.2.3 TUL-002-5.3.1 TUL-002-5.3.2 TUL-002-5.3.3 TUL-002-5.3.4 TUL-002-5.3.5 TUL-002-5.3.6
/// TUL-002-5.4.1 TUL-002-5.4.2 TUL-002-5.4.3 TUL-002-5.4.4 TUL-002-6.1 TUL-002-6.2 TUL-002-6.3 TUL-002-6.4 TUL-002-7.2.1
/// TUL-002-7.2.3 TUL-002-8.2.3 TUL-002-8.2.4 TUL-002-8.4.1 TUL-002-8.4.3 TUL-002-8.5.1 TUL-002-8.5.2 TUL-002-8.6.5 TUL-002-9.2
/// TUL-002-10.2 TUL-002-10.3 TUL-002-10.4
#[test]
fn every_scenario_of_line_patches_holds_over_grpc() {
    let mut scene = Scene::new();
    let (mut wrong, mut count) = (Vec::new(), 0);
    // The machine's only root has another name.
    let texts = SCENARIOS.map(|text| text.replace("ws/", "project/"));
    for Scenario { title, parts } in texts.iter().flat_map(|text| parse(text)) {
        let known = ["file", "document", "cases", "error", "exit", "after", "says", "warning"];
        let is_run = title.contains("TUL-002") && !title.ends_with(FOUND_APART);
        if !is_run || !parts.iter().all(|part| known.contains(&part.word.as_str())) {
            continue;
        }
        for (case, expected) in cases(&parts) {
            count += 1;
            let filled: Vec<_> =
                parts.iter().map(|part| Part { body: part.body.replace("$1", &case), ..part.clone() }).collect();
            let problems = tried(&mut scene, count, &filled, expected);
            wrong.extend(problems.into_iter().map(|problem| format!("{title} [{case}]: {problem}")));
        }
    }
    assert!(count > 60, "{count} cases are not all of them");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn put(scene: &Scene, text: &str) {
    scene.machine.put("a.txt", text);
}

/// A patch of `a.txt` with two changes and everything that an author may say about them.
fn labelled(digest_of: &str) -> Value {
    json!({
        "batchKey": "the batch", "batchLabel": " Greets\tthe world. ",
        "files": [{
            "fileKey": "the file", "fileLabel": "Émile's file", "docPath": "project/a.txt",
            "originalSha256": aptix_engine::digest::sha256(digest_of.as_bytes()).to_string(),
            "changes": [
                { "changeKey": "first", "description": "why it is made", "operation": "replace", "startLine": 2,
                  "endLine": 2, "expectedOriginalLines": ["two"], "newLines": ["2"] },
                { "operation": "insert", "afterLine": 2, "newLines": ["3"] },
            ],
        }],
    })
}

fn submitted(scene: &mut Scene, request: &str, document: &Value) -> Result<v1::Batch, Outcome> {
    scene.submit(request, document.to_string().into_bytes())
}

fn changes(batch: &v1::Batch) -> &[v1::Change] {
    match &batch.edit.as_ref().unwrap().files[0].action {
        Some(Action::LinePatch(patch)) => &patch.changes,
        other => panic!("{other:?}"),
    }
}

/// TUL-002-4.1.1, TUL-002-4.1.2, TUL-002-4.2.8, TUL-002-5.1.5, TUL-002-7.2.2, TUL-002-10.6: labels, keys and descriptions are
/// in the record as they were written, and two batches may have one key. TUL-002-5.1.3, TUL-002-7.1.1, TUL-002-7.1.2,
/// TUL-002-7.1.3, TUL-002-10.1, TUL-002-10.5: a batch of one file succeeds with all its ids and a complete result.
#[test]
fn the_record_of_a_line_patch_has_its_ids_its_words_and_its_result() {
    let mut scene = Scene::new();
    let (before, after) = ("one\ntwo\n", "one\n2\n3\n");
    let mut ids = std::collections::BTreeSet::new();
    for request in ["r1", "r2"] {
        put(&scene, before);
        let batch = submitted(&mut scene, request, &labelled(before)).unwrap();
        assert_eq!(batch.state(), v1::BatchState::Applied);
        let edit = batch.edit.as_ref().unwrap();
        assert_eq!((edit.key.as_str(), edit.label.as_str()), ("the batch", " Greets\tthe world. "));
        assert_eq!((edit.files[0].key.as_str(), edit.files[0].label.as_str()), ("the file", "Émile's file"));
        let changes = changes(&batch);
        let said: Vec<_> = changes.iter().map(|change| (&*change.key, &*change.description)).collect();
        assert_eq!(said, [("first", "why it is made"), ("", "")]);
        assert!(matches!(changes[0].operation, Some(Operation::Replace(_))), "{changes:?}");
        ids.extend([batch.batch_id.clone(), edit.files[0].file_patch_id.clone()]);
        ids.extend(changes.iter().map(|change| change.change_id.clone()));
        let report = batch.report.as_ref().unwrap();
        assert_eq!((report.outcome(), report.failures.len(), report.files.len()), (v1::Outcome::Applied, 0, 1));
        let file = &report.files[0];
        let digest = |text: &str| Some(aptix_engine::digest::sha256(text.as_bytes()).to_string());
        assert_eq!((file.path.as_str(), file.doc_path.as_str()), ("a.txt", "project/a.txt"));
        assert_eq!((file.status(), file.size_bytes), (v1::FileStatus::Modified, Some(8)));
        assert_eq!((&file.sha256_before, &file.sha256), (&digest(before), &digest(after)));
        let lines: Vec<_> = file.changes.iter().map(|change| (change.start_line, change.end_line)).collect();
        assert_eq!(lines, [(2, 2), (3, 3)]);
        assert!(report.diff.ends_with("@@ -1,2 +1,3 @@\n one\n-two\n+2\n+3\n"), "{}", report.diff);
        assert_eq!(scene.machine.files(), [("a.txt".to_owned(), after.to_owned())]);
    }
    assert!(ids.iter().all(|id| id.len() == 36), "{ids:?}");
    assert_eq!(ids.len(), 8, "no id occurs twice: {ids:?}");
}

/// TUL-002-8.6.6: the same changes on the same file give the same bytes, diff and report, whenever they are submitted.
#[test]
fn the_same_patch_of_the_same_file_gives_the_same_result_over_grpc() {
    let mut scene = Scene::new();
    let patch = labelled("one\ntwo\n");
    for (before, is_applied) in [("one\ntwo\n", true), ("one\ntwo\nthree\n", false)] {
        let results: Vec<_> = (0..3)
            .map(|round| {
                put(&scene, before);
                let batch = submitted(&mut scene, &format!("{is_applied}-{round}"), &patch).unwrap();
                (batch.report.unwrap(), scene.machine.files())
            })
            .collect();
        assert_eq!(results[0].0.outcome() == v1::Outcome::Applied, is_applied);
        assert!(results.iter().all(|result| *result == results[0]), "{results:?}");
    }
}

/// TUL-002-9.1, TUL-002-9.3: what is wrong with a patch is an answer with its reason and never an unexpected error: of the call
/// if the server finds it, of the batch if the agent does. Both say what to do next.
#[test]
fn a_refused_patch_is_an_answer_over_grpc() {
    let mut scene = Scene::new();
    put(&scene, "one\ntwo\n");
    let mut malformed = labelled("one\ntwo\n");
    malformed["files"][0]["originalSha256"] = "abc".into();
    let refused = submitted(&mut scene, "malformed", &malformed).unwrap_err();
    assert_eq!(refused, ["INVALID_REQUEST SHA_FORMAT"]);
    let mut stale = labelled("one\n2\n");
    // Nothing proves where an insertion belongs.
    stale["files"][0]["changes"].as_array_mut().unwrap().truncate(1);
    let stale = submitted(&mut scene, "stale", &stale).unwrap();
    assert_eq!(stale.state(), v1::BatchState::Failed);
    let report = stale.report.unwrap();
    assert_eq!((report.outcome(), report.files.len(), report.failures.len()), (v1::Outcome::Failed, 0, 1));
    let failure = &report.failures[0];
    assert_eq!((failure.reason.as_str(), failure.path.as_str()), ("SHA_MISMATCH", "a.txt"));
    let next = failure.next_action.as_ref().expect("the patch with the file's own digest");
    let again = scene.submit("again", next.text.to_vec()).unwrap();
    assert_eq!(outcome(&Ok(again)), Vec::<String>::new());
    assert_eq!(scene.machine.files(), [("a.txt".to_owned(), "one\n2\n".to_owned())]);
}
