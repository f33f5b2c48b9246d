//! Neither a refusal nor a success reveals whether an edit fits a file that its author may not read.

use std::cell::Cell;

use aptix_client::apply::acting::Acting;
use aptix_client::apply::proposal::Decision;
use aptix_client::apply::{ApplyOptions, Mode, Refusal, apply};
use aptix_client::connection::receipt::{self, Receipt};
use aptix_client::policy::caller::Caller;
use aptix_client::policy::files::PolicyFiles;
use aptix_client::workspace::fs::disk::SystemDisk;
use aptix_client::workspace::roots::workspace::Workspace;
use aptix_engine::digest::sha256;
use aptix_model::actor::Actor;
use aptix_model::batch::{Batch, Origin};
use aptix_model::documents::{self, Dialect};
use aptix_model::report::Report;
use aptix_model::tools::catalogue::find;
use aptix_model::tools::roots::Roots;
use aptix_model::tools::tool::Call;
use serde_json::json;

use super::{Approve, Scene, TEXT, id, lay_out, of_batch};

/// How a dialect says an edit of a line.
type Text<'a> = (Dialect, &'a dyn Fn(&str) -> String);

/// Edits of a file, each as it fits [`TEXT`] and as it does not; of one length, so that nothing else differs.
fn pairs(path: &str) -> Vec<[Batch; 2]> {
    let (right, wrong) = ("zebra-second", "zebra-sekond");
    let digests = [sha256(TEXT.as_bytes()), sha256(b"other")];
    let parse = |dialect, text: String| documents::parse(text.as_bytes(), Some(dialect)).unwrap().batch;
    let replaced = |digest: &str, expected: &str, new: &str| {
        let change = json!({ "operation": "replace", "startLine": 2, "endLine": 2, "expectedOriginalLines": [expected], "newLines": [new] });
        let file = json!({ "docPath": format!("ws/{path}"), "originalSha256": digest, "changes": [change] });
        parse(Dialect::LinePatch, json!({ "files": [file] }).to_string())
    };
    let lines = |digest: &str, expected: &str| replaced(digest, expected, "x");
    let texts: [Text<'_>; 7] = [
        (Dialect::SearchPatch, &|old| {
            json!({ "path": path, "patches": [{ "operation": "replace", "oldText": old, "newText": "x" }] }).to_string()
        }),
        (Dialect::StructuredPatch, &|old| {
            json!({ "patches": [{ "path": path, "replacements": [{ "find": old, "replace": "x" }] }] }).to_string()
        }),
        (Dialect::StrReplace, &|old| {
            json!({ "command": "str_replace", "path": path, "old_str": old, "new_str": "x" }).to_string()
        }),
        (Dialect::GitPatch, &|old| format!("--- a/{path}\n+++ b/{path}\n@@ -2 +2 @@\n-{old}\n+x\n")),
        (Dialect::GitPatch, &|old| {
            format!("--- a/{path}\n+++ /dev/null\n@@ -1,3 +0,0 @@\n-zebra-first\n-{old}\n-zebra-third\n")
        }),
        (Dialect::CodexPatch, &|old| {
            format!("*** Begin Patch\n*** Update File: {path}\n@@\n-{old}\n+x\n*** End Patch\n")
        }),
        (Dialect::SearchReplace, &|old| format!("{path}\n<<<<<<< SEARCH\n{old}\n=======\nx\n>>>>>>> REPLACE\n")),
    ];
    let anchored = |anchor: &str| {
        let arguments = json!({ "path": path, "anchor": anchor, "content": "x" }).to_string();
        let Ok(Call::Prepare { patch, .. }) =
            find("prepare_file_insert_after").unwrap().parse(&arguments, &Roots::default())
        else {
            panic!()
        };
        Batch { files: vec![patch], ..Batch::default() }
    };
    let mut pairs = vec![
        digests.map(|digest| lines(&digest.to_string(), right)),
        [right, wrong].map(|expected| lines(&digests[0].to_string(), expected)),
        [right, wrong].map(anchored),
        // The second one was applied before.
        [(&digests[0], right, "x"), (&digests[1], wrong, right)]
            .map(|(digest, old, new)| replaced(&digest.to_string(), old, new)),
    ];
    pairs.extend(texts.iter().map(|(dialect, text)| [right, wrong].map(|old| parse(*dialect, text(old)))));
    pairs
}

/// Without a user, an edit that fits and one that does not are the same on the wire except for their ids.
#[tokio::test]
async fn without_a_user_to_ask_every_edit_gets_the_same_bytes() {
    use prost::Message;
    for approve in [Approve::Auto, Approve::Ask] {
        let scene = Scene::set(approve);
        lay_out(&scene);
        scene.put_policy("limits = { refused_per_minute = 1000 }");
        let mut number = 0;
        for path in ["ignored.txt", "twin.txt", "terraform.tfvars"] {
            for pair in pairs(path) {
                let mut answers = Vec::new();
                for batch in pair {
                    number += 1;
                    scene.server.send(of_batch(number, batch));
                    let report = scene.report_of(number).await;
                    assert_eq!(report.failures[0].detail, "WITHHELD", "{report:?}");
                    answers.push(report.encode_to_vec());
                }
                assert_eq!(answers[0], answers[1], "{path}: {:?}", scene.server.script.lock().unwrap().reports.last());
            }
        }
    }
}

/// What a person does who is asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Person {
    LetsNothingBeCompared,
    RefusesWhatFits,
    Agrees,
}

pub(super) fn applied(scene: &Scene, batch: &Batch, person: Person) -> Result<Report, Refusal> {
    let spec = format!("ws={}", scene.place.path().join("ws").display()).parse().unwrap();
    let local = Workspace::open(&[spec], scene.place.path(), Box::new(SystemDisk)).unwrap();
    let policy = PolicyFiles::new(&scene.place.path().join("config"), Caller::Server).read(&local).unwrap();
    let batch_id = id(1).parse().unwrap();
    let receipt = |report: &Report| Receipt {
        workspace: "w".parse().unwrap(),
        batch: batch_id,
        report: report.clone(),
        decided_by: None,
        traceparent: None,
    };
    let (encode, was_asked) = (|report: &Report, _: Option<&Actor>| Ok(receipt::encode(receipt(report))), Cell::new(0));
    let compare = |hidden: &[aptix_client::apply::Hidden<'_>]| {
        was_asked.set(was_asked.get() + hidden.len());
        person != Person::LetsNothingBeCompared
    };
    let mode = Mode::CommitWithReceipt { batch: batch_id, encode: &encode, compare: &compare };
    let options = ApplyOptions {
        policy: &policy,
        origin: &Origin::default(),
        diff_bytes: 1 << 20,
        mode,
        prepared: None,
        acting: Acting::UNKNOWN,
    };
    let outcome = apply(&local, batch, options, &mut |proposal| match person {
        Person::Agrees => {
            assert!(!proposal.is_allowed(), "what was compared is asked about once more, and shown");
            Decision::Approved(proposal.digest())
        }
        _ => Decision::Refuse(vec![aptix_model::failure::Failure::new(
            aptix_model::reason::Reason::Rejected,
            "not this",
        )]),
    });
    assert_eq!(was_asked.get(), 1);
    outcome
}

/// Who is asked may say no before or after the comparison, or the edit may not fit: its author cannot distinguish these.
#[tokio::test]
async fn refused_and_not_fitting_get_the_same_answer() {
    let scene = Scene::set(Approve::Never);
    lay_out(&scene);
    for path in ["ignored.txt", "terraform.tfvars"] {
        for [fits, misfits] in pairs(path) {
            let mut answers = Vec::new();
            for batch in [&fits, &misfits] {
                for person in [Person::LetsNothingBeCompared, Person::RefusesWhatFits] {
                    answers.push(applied(&scene, batch, person).unwrap_err());
                }
            }
            answers.push(applied(&scene, &misfits, Person::Agrees).expect_err(&format!("{misfits:?}")));
            assert!(answers.iter().all(|refusal| *refusal == answers[0]), "{answers:#?}");
            assert_eq!(scene.file(path), TEXT);
        }
    }
    // An applied batch reveals nothing else.
    for [fits, _] in pairs("ignored.txt").into_iter().take(1) {
        let report = applied(&scene, &fits, Person::Agrees).unwrap();
        let file = &report.files[0];
        assert_eq!((file.sha256_before, file.written, file.changes.len(), report.diff.as_str()), (None, None, 0, ""));
        assert_eq!(file.warnings.iter().map(|warning| warning.code.as_str()).collect::<Vec<_>>(), ["WITHHELD"]);
        assert_eq!(scene.file("ignored.txt"), TEXT.replace("zebra-second", "x"));
    }
}

/// A server that guesses what a withheld file holds now, and says that it lacks just that, is not given it: so many guesses
/// as it likes would come with one answer.
#[tokio::test]
async fn a_server_that_guesses_at_new_contents_learns_nothing() {
    let mut scene = Scene::set(Approve::Never);
    scene.stop().await;
    lay_out(&scene);
    let new = TEXT.replace("zebra-second", "x");
    let [fits, _] = pairs("ignored.txt").swap_remove(1);
    let open = documents::parse(
        br#"{"files":[{"path":"new.txt","operation":"create","content":"mine\n"}]}"#,
        Some(Dialect::FileBundle),
    );
    let batch = Batch { files: [fits.files, open.unwrap().batch.files].concat(), ..Batch::default() };
    applied(&scene, &batch, Person::Agrees).unwrap();
    assert_eq!(scene.file("ignored.txt"), new);
    let guess = sha256(new.as_bytes()).to_string();
    scene.server.script.lock().unwrap().guesses = vec![sha256(b"other").to_string(), guess.clone()];
    scene.start(Approve::Never);
    scene.report_of(1).await;
    let script = scene.server.script.lock().unwrap();
    let given: Vec<_> = script.blobs.keys().cloned().collect();
    assert_eq!(given, [sha256(b"mine\n").to_string()], "a guess was answered");
}

/// Files that may be read are reported before anyone is asked, whatever the others hold.
#[tokio::test]
async fn failures_elsewhere_are_reported_first() {
    let scene = Scene::set(Approve::Never);
    lay_out(&scene);
    let [elsewhere, _] = pairs("a.txt").swap_remove(0);
    let refusals = pairs("ignored.txt").swap_remove(1).map(|batch| {
        let files = [batch.files, elsewhere.files.clone()].concat();
        let spec = format!("ws={}", scene.place.path().join("ws").display()).parse().unwrap();
        let local = Workspace::open(&[spec], scene.place.path(), Box::new(SystemDisk)).unwrap();
        let policy = PolicyFiles::new(&scene.place.path().join("config"), Caller::Server).read(&local).unwrap();
        let options = ApplyOptions {
            policy: &policy,
            origin: &Origin::default(),
            diff_bytes: 0,
            mode: Mode::Commit,
            prepared: None,
            acting: Acting::UNKNOWN,
        };
        apply(&local, &Batch { files, ..Batch::default() }, options, &mut |_| Decision::Apply).unwrap_err()
    });
    assert_eq!(refusals[0], refusals[1]);
    let failure = &refusals[0].failures[0];
    assert_eq!((failure.file_index, failure.current_sha256), (Some(1), Some(sha256(b"1\n"))), "{failure:?}");
}
