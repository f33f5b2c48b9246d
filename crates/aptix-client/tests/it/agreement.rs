//! What a person agrees to is what is written: an answer is bound to the batch, the root, and each file before and after.

use std::path::Path;

use aptix_client::apply::acting::Acting;
use aptix_client::apply::proposal::{Decision, Proposal};
use aptix_client::apply::{ApplyOptions, Mode, Refusal, apply};
use aptix_client::policy::Policy;
use aptix_client::policy::caller::Caller;
use aptix_client::workspace::fs::disk::SystemDisk;
use aptix_client::workspace::roots::workspace::Workspace;
use aptix_model::batch::{Batch, Origin};
use aptix_model::digest::Sha256Digest;
use aptix_model::documents;
use aptix_model::failure::Failure;
use aptix_model::reason::{Detail, Reason};
use aptix_model::report::Report;

fn overwrite(path: &str, content: &str) -> Batch {
    let document = serde_json::json!({ "path": path, "content": content, "overwrite": true }).to_string();
    documents::parse(document.as_bytes(), None).unwrap().batch
}

fn decided(
    place: &Path,
    root: &str,
    batch: &Batch,
    decide: &mut dyn FnMut(&Proposal<'_>) -> Decision,
) -> Result<Report, Refusal> {
    std::fs::create_dir_all(place.join(root)).unwrap();
    let spec = format!("ws={}", place.join(root).display()).parse().unwrap();
    let workspace = Workspace::open(&[spec], place, Box::new(SystemDisk)).unwrap();
    let policy = Policy::unstated(Caller::Shell);
    let options = ApplyOptions {
        policy: &policy,
        origin: &Origin::default(),
        diff_bytes: 1 << 20,
        mode: Mode::Commit,
        prepared: None,
        acting: Acting::UNKNOWN,
    };
    apply(&workspace, batch, options, decide)
}

/// What would be agreed to; nothing is written.
fn subject(place: &Path, root: &str, batch: &Batch) -> Sha256Digest {
    let mut subject = None;
    let look = &mut |proposal: &Proposal<'_>| {
        subject = Some(proposal.digest());
        Decision::Refuse(vec![Failure::new(Reason::Rejected, "this only looks")])
    };
    decided(place, root, batch, look).unwrap_err();
    subject.unwrap()
}

#[test]
fn every_difference_is_another_subject() {
    let place = tempfile::tempdir().unwrap();
    let put = |root: &str, text: &str| {
        std::fs::create_dir_all(place.path().join(root)).unwrap();
        std::fs::write(place.path().join(root).join("a.txt"), text).unwrap();
    };
    put("one", "old\n");
    put("two", "old\n");
    let batch = overwrite("a.txt", "new\n");
    let subject = |root, batch: &Batch| subject(place.path(), root, batch);
    let first = subject("one", &batch);
    assert_eq!(subject("one", &batch), first, "the same is the same");
    let mut subjects = vec![first];
    subjects.push(subject("two", &batch));
    subjects.push(subject("one", &overwrite("a.txt", "other\n")));
    subjects.push(subject("one", &overwrite("b.txt", "new\n")));
    subjects.push(subject("one", &Batch { label: Some("label".to_owned()), ..batch.clone() }));
    let quote = aptix_model::quote::Quote {
        first_line: 1,
        last_line: 3,
        names: vec![aptix_model::quote::QuoteName { path: "a.txt".to_owned(), is_path: true }],
        is_announced: false,
        text: "new\n".to_owned(),
    };
    let quoting = Batch { quotes: vec![quote.clone()], ..batch.clone() };
    subjects.push(subject("one", &quoting));
    let other = aptix_model::quote::Quote { text: "old\n".to_owned(), ..quote };
    subjects.push(subject("one", &Batch { quotes: vec![other], ..batch.clone() }));
    put("one", "meanwhile\n");
    subjects.push(subject("one", &batch));
    std::fs::remove_file(place.path().join("one/a.txt")).unwrap();
    subjects.push(subject("one", &batch));
    for (index, one) in subjects.iter().enumerate() {
        assert!(!subjects[..index].contains(one), "{index}");
    }
}

#[test]
fn a_file_removed_during_the_approval_is_reported_as_removed() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("ws/a.txt");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, "old\n").unwrap();
    let refused = decided(place.path(), "ws", &overwrite("a.txt", "new\n"), &mut |proposal| {
        std::fs::remove_file(&file).unwrap();
        Decision::Approved(proposal.digest())
    });
    let failure = &refused.unwrap_err().failures[0];
    assert_eq!(failure.reason, Reason::FileChanged);
    assert_eq!(failure.message, "another process removed the file after it was read");
    assert!(failure.hint.as_ref().unwrap().starts_with("bring the file back"), "{failure:?}");
}

#[test]
fn an_agreement_to_something_else_is_void() {
    let place = tempfile::tempdir().unwrap();
    let (shown, sent) = (overwrite("a.txt", "shown\n"), overwrite("a.txt", "sent\n"));
    let agreed = subject(place.path(), "ws", &shown);
    let refused = decided(place.path(), "ws", &sent, &mut |_| Decision::Approved(agreed)).unwrap_err();
    let failure = &refused.failures[0];
    assert_eq!((failure.reason, failure.detail), (Reason::ApprovalRequired, Some(Detail::Changed)), "{failure}");
    assert!(!place.path().join("ws/a.txt").exists());
    decided(place.path(), "ws", &shown, &mut |_| Decision::Approved(agreed)).unwrap();
    assert_eq!(std::fs::read_to_string(place.path().join("ws/a.txt")).unwrap(), "shown\n");
}
