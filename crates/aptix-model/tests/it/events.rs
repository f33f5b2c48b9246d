//! Log events: their fields are those that the page about logs lists, and nothing that an author or a file says is in them.

use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aptix_model::batch::{Batch, Content, CreateFile, FileEdit, FilePatch, Origin, Target};
use aptix_model::events::event::Event;
use aptix_model::events::trace::{Trace, Via};
use aptix_model::failure::{Excerpt, Failure, NextAction};
use aptix_model::id::{BatchId, Revision, Uuid};
use aptix_model::reason::{Detail, Reason};
use aptix_model::report::Report;
use aptix_model::state::BatchState;
use serde_json::Value;

const PAGE: &str = include_str!("../../../../docs/reference/logs.md");

#[derive(Clone, Default)]
struct Logged(Arc<Mutex<Vec<u8>>>);

impl Write for Logged {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// What events put into a JSON log, one object for each line.
fn logged(trace: &Trace, events: &[Event<'_>]) -> Vec<Value> {
    let log = Logged::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt().json().flatten_event(true).with_writer(move || writer.clone()).finish();
    tracing::subscriber::with_default(subscriber, || {
        events.iter().for_each(|event| trace.log(Duration::from_micros(1_500), *event));
    });
    let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn create(path: &str) -> FilePatch {
    let content = Content::Text("SECRET CONTENT".to_owned());
    let edit = FileEdit::CreateFile(CreateFile { content, overwrite: false, content_format: None });
    FilePatch { target: Target::Path(path.to_owned()), key: None, label: Some("SECRET LABEL".to_owned()), edit }
}

/// The names in the first column of the table below a heading.
fn listed(heading: &str) -> Vec<&'static str> {
    let (_, section) = PAGE.split_once(&format!("## {heading}\n")).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
    let mut names: Vec<_> = rows.map(|row| row.split('`').next().unwrap()).collect();
    names.sort_unstable();
    names
}

#[test]
fn the_page_about_logs_lists_every_event_and_every_field() {
    let batch = Batch { files: vec![create("a.txt")], ..Batch::default() };
    let (report, failure) = (Report::applied(Vec::new()), Failure::new(Reason::FileExists, "x"));
    let failures = std::slice::from_ref(&failure);
    let digest = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855".parse().unwrap();
    let events = [
        Event::Received(&batch),
        Event::Stored(&batch, Revision(1)),
        Event::Repeated(BatchState::Applied),
        Event::Forwarded(&batch),
        Event::Agreed(digest),
        Event::Checked(&batch),
        Event::Prepared(&batch),
        Event::Applied(&batch, &report),
        Event::Undone(&batch, "id"),
        Event::Refused(Some(&batch), failures),
        Event::CallRefused(failures),
        Event::Reported(BatchState::Applied, Some((&batch, &report))),
        Event::Cancelled,
        Event::Freed,
        Event::Approved,
        Event::Rejected,
        Event::Expired,
        Event::Withdrawn,
    ];
    let lines = logged(&Trace::new(Via::Agent), &events);
    let mut names: Vec<_> = lines.iter().map(|line| line["Event"].as_str().unwrap()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names, listed("Events"));

    // What every line has, and what only some have.
    let names: Arc<Mutex<Vec<&'static str>>> = Arc::default();
    let seen = Arc::clone(&names);
    let fields = Fields(Box::new(move |found| *seen.lock().unwrap() = found));
    tracing::subscriber::with_default(fields, || Trace::new(Via::Agent).log(Duration::ZERO, Event::Cancelled));
    let mut names = names.lock().unwrap().clone();
    names.sort_unstable();
    assert_eq!(names, listed("Fields"));
}

/// Hands over the names of all fields that events may have.
struct Fields(Box<dyn Fn(Vec<&'static str>) + Send + Sync>);

impl tracing::Subscriber for Fields {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }
    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn event(&self, event: &tracing::Event<'_>) {
        self.0(event.metadata().fields().iter().map(|field| field.name()).collect());
    }
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}

/// Of a failure only its codes and places are logged, and the message where that is about the machine.
#[test]
fn no_word_of_a_document_or_a_file_is_logged() {
    let telling = |reason| Failure {
        nearest: vec![Excerpt { start_line: 1, end_line: 1, text: "SECRET LINE".to_owned() }],
        next_action: Some(NextAction { dialect: "create_file".to_owned(), document: "SECRET DOCUMENT".to_owned() }),
        ..Failure::new(reason, "SECRET MESSAGE").hint("SECRET HINT")
    };
    let batch =
        Batch { label: Some("SECRET LABEL".to_owned()), key: Some("SECRET KEY".to_owned()), ..Batch::default() };
    let batch = Batch { files: vec![create("a.txt"), create("b\u{1b}[31m\u{202e}.txt")], ..batch };
    let system = [Reason::WriteFailed, Reason::ReadFailed, Reason::DirectoryCreateFailed, Reason::NeedsOperator];
    let system = [system.as_slice(), &[Reason::ResourceExhausted, Reason::Unavailable, Reason::WorkspaceBusy]].concat();
    for reason in Reason::ALL.into_iter().filter(|reason| !system.contains(reason)) {
        let failures = [telling(reason).file(1, "b\u{1b}[31m\u{202e}.txt").change(0).line(7)];
        let trace = Trace { batch: Some(BatchId(Uuid::nil())), ..Trace::new(Via::Agent) };
        let lines = logged(&trace, &[Event::Received(&batch), Event::Refused(Some(&batch), &failures)]);
        let text = format!("{lines:?}");
        assert!(!text.contains("SECRET"), "{text}");
        let causes = format!("b\\u{{1b}}[31m\\u{{202e}}.txt, change 1, line 7: {}", reason.code());
        assert_eq!(lines[1]["Causes"], causes);
    }
    let failure = Failure::new(Reason::WriteFailed, "no space left on device").detail(Detail::Fds);
    let lines = logged(&Trace::new(Via::Apply), &[Event::Refused(None, &[failure])]);
    assert_eq!(lines[0]["Causes"], "WRITE_FAILED (FDS): no space left on device");
}

/// What authors chose is cut, and a hundred failures are one line.
#[test]
fn an_event_is_short_whatever_it_is_about() {
    let long = "x".repeat(1 << 20);
    let origin =
        Origin { session_id: Some(long.clone()), conversation_id: Some(String::new()), turn_id: Some(long.clone()) };
    let trace = Trace {
        origin,
        workspace: Some(long.clone()),
        request: Some(long.clone()),
        tool: Some(long.clone()),
        ..Trace::new(Via::Server)
    };
    let failures = vec![Failure::new(Reason::FileMissing, "x").file(0, &long).field(long.as_str()); 100];
    let lines = logged(&trace, &[Event::Refused(None, &failures)]);
    assert_eq!(lines[0]["Count"], 100);
    assert_eq!(lines[0]["DurationMs"], 1.5);
    assert!(lines[0].get("ConversationId").is_none(), "an empty id is none");
    assert!(lines[0].to_string().len() < 50_000);
}
