//! Counts the entries of a message before it is decoded: an entry of two bytes on the wire takes hundreds in memory.

use std::iter::Chain;
use std::slice::Iter;

use aptix_model::failure::Failure;
use aptix_model::id_block;
use aptix_model::limits::LINES;
use aptix_model::reason::{Detail, Reason};
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};

use super::body::PREFIX_BYTES;

/// A list in a message.
struct List {
    /// The numbers of the fields that lead to it.
    path: &'static [u32],
    /// Its name, as callers write it.
    name: &'static str,
    detail: Detail,
}

/// The lists of a message, or of a message in it.
struct Part {
    /// The numbers of the fields that lead to that message.
    at: &'static [u32],
    /// Its name, with a dot behind it.
    name: &'static str,
    lists: &'static [List],
    /// How many entries each list has at most.
    most: usize,
}

impl Part {
    /// Of lists that have no more entries than a batch has ids.
    const fn new(at: &'static [u32], name: &'static str, lists: &'static [List]) -> Self {
        Self { at, name, lists, most: id_block::ENTRIES }
    }

    /// Of lists of lines, names and other texts.
    const fn texts(at: &'static [u32], name: &'static str, lists: &'static [List]) -> Self {
        Self { at, name, lists, most: LINES }
    }
}

const EDIT: &[List] = &[
    List { path: &[3], name: "files", detail: Detail::Files },
    List { path: &[3, 6, 2], name: "files.linePatch.changes", detail: Detail::Changes },
    List { path: &[3, 10, 1], name: "files.searchPatch.changes", detail: Detail::Changes },
    List { path: &[3, 11, 1], name: "files.replacements.steps", detail: Detail::Changes },
    List { path: &[3, 12, 7], name: "files.gitPatch.hunks", detail: Detail::Changes },
    List { path: &[3, 13, 2], name: "files.contextPatch.chunks", detail: Detail::Changes },
    List { path: &[3, 18, 1], name: "files.editorCommands.commands", detail: Detail::Changes },
    List { path: &[3, 17, 1], name: "files.gitSeries.parts", detail: Detail::Changes },
    List { path: &[3, 17, 1, 7], name: "files.gitSeries.parts.hunks", detail: Detail::Changes },
    List { path: &[3, 16, 3], name: "files.quote.names", detail: Detail::Text },
];

/// The lists of texts in an edit, which have no ids.
const EDIT_TEXTS: &[List] = &[
    List { path: &[5], name: "requiredFeatures", detail: Detail::Text },
    List { path: &[3, 15, 1], name: "files.pathReadings.stripped", detail: Detail::Text },
    List { path: &[3, 15, 2], name: "files.pathReadings.written", detail: Detail::Text },
    List { path: &[3, 6, 2, 4, 2], name: "files.linePatch.changes.insert.newLines", detail: Detail::Line },
    List {
        path: &[3, 6, 2, 5, 3],
        name: "files.linePatch.changes.replace.expectedOriginalLines",
        detail: Detail::Line,
    },
    List { path: &[3, 6, 2, 5, 4], name: "files.linePatch.changes.replace.newLines", detail: Detail::Line },
    List { path: &[3, 6, 2, 6, 3], name: "files.linePatch.changes.delete.expectedOriginalLines", detail: Detail::Line },
    List { path: &[3, 12, 7, 6], name: "files.gitPatch.hunks.lines", detail: Detail::Line },
    List { path: &[3, 17, 1, 7, 6], name: "files.gitSeries.parts.hunks.lines", detail: Detail::Line },
    List { path: &[3, 13, 2, 2], name: "files.contextPatch.chunks.anchors", detail: Detail::Line },
    List { path: &[3, 13, 2, 3], name: "files.contextPatch.chunks.lines", detail: Detail::Line },
];

const REPORT: &[List] = &[
    List { path: &[2], name: "files", detail: Detail::Files },
    List { path: &[2, 7], name: "files.normalized", detail: Detail::Text },
    List { path: &[2, 8], name: "files.warnings", detail: Detail::Text },
    List { path: &[2, 9], name: "files.changes", detail: Detail::Changes },
    List { path: &[3], name: "failures", detail: Detail::Text },
    List { path: &[3, 10], name: "failures.nearest", detail: Detail::Text },
    List { path: &[6], name: "warnings", detail: Detail::Text },
];

/// Of a plan, beside its report.
const PLAN: &[List] = &[
    List { path: &[2], name: "files", detail: Detail::Files },
    List { path: &[2, 1], name: "files.places", detail: Detail::Changes },
];

const HELLO: &[List] = &[
    List { path: &[7], name: "roots", detail: Detail::Text },
    List { path: &[9], name: "features", detail: Detail::Text },
];

const ANSWER: &[List] = &[
    List { path: &[2, 10], name: "failure.nearest", detail: Detail::Text },
    List { path: &[3, 1], name: "readFiles.results", detail: Detail::Files },
    List { path: &[3, 1, 2, 10], name: "readFiles.results.failure.nearest", detail: Detail::Text },
    List { path: &[4, 1], name: "statFiles.results", detail: Detail::Files },
    List { path: &[4, 1, 2, 10], name: "statFiles.results.failure.nearest", detail: Detail::Text },
    List { path: &[5, 1], name: "listFiles.files", detail: Detail::Files },
    List { path: &[5, 3], name: "listFiles.damaged", detail: Detail::Files },
    List { path: &[5, 4, 5], name: "listFiles.skipped.paths", detail: Detail::Text },
    List { path: &[6, 1], name: "searchFiles.matches", detail: Detail::Files },
    List { path: &[6, 3, 5], name: "searchFiles.skipped.paths", detail: Detail::Text },
    List { path: &[9, 1], name: "callTool.text", detail: Detail::Text },
    List { path: &[10, 1], name: "resolvePaths.paths", detail: Detail::Files },
];

const FILES: &[List] = &[List { path: &[2], name: "files", detail: Detail::Files }];

const TOOLS: &[List] = &[List { path: &[3], name: "tools", detail: Detail::Text }];

const BLOBS: &[List] = &[List { path: &[2], name: "sha256", detail: Detail::Text }];

const FILTER: &[List] = &[
    List { path: &[2], name: "sessionIds", detail: Detail::Text },
    List { path: &[3], name: "docPaths", detail: Detail::Text },
];

const SEARCH: &[List] = &[List { path: &[4], name: "globs", detail: Detail::Text }];

/// The messages of agents.
const SENT: &[Part] = &[
    Part::new(&[1], "hello.", HELLO),
    Part::new(&[2], "answer.", ANSWER),
    Part::new(&[2, 7], "answer.preview.", REPORT),
    Part::new(&[2, 8, 1], "answer.prepare.report.", REPORT),
    Part::new(&[2, 8], "answer.prepare.", PLAN),
];

/// The message of a call of this method.
fn parts(method: &str) -> &'static [Part] {
    match method {
        "/aptix.v1.BatchService/SubmitBatch" | "/aptix.v1.BatchService/PrepareBatch" => {
            const { &[Part::new(&[3], "edit.", EDIT), Part::texts(&[3], "edit.", EDIT_TEXTS)] }
        }
        "/aptix.v1.AgentService/ReportBatch" => const { &[Part::new(&[4], "report.", REPORT)] },
        "/aptix.v1.AgentService/ReportLocalBatch" => {
            const {
                &[
                    Part::new(&[5], "edit.", EDIT),
                    Part::texts(&[5], "edit.", EDIT_TEXTS),
                    Part::new(&[6], "report.", REPORT),
                ]
            }
        }
        "/aptix.v1.FileService/ReadFiles" | "/aptix.v1.FileService/StatFiles" => const { &[Part::new(&[], "", FILES)] },
        "/aptix.v1.FileService/SearchFiles" => const { &[Part::new(&[], "", SEARCH)] },
        "/aptix.v1.FileService/FindMissingBlobs" => const { &[Part::new(&[], "", BLOBS)] },
        "/aptix.v1.ToolService/ListTools" => const { &[Part::texts(&[], "", TOOLS)] },
        "/aptix.v1.WorkspaceService/WatchWorkspace" => const { &[Part::new(&[4], "filter.", FILTER)] },
        _ => &[],
    }
}

/// Refuses the message of a call of this method if one of its lists has more entries than any batch. What is no message
/// passes: decoding reports what is wrong with it.
///
/// # Errors
/// Which list is too long.
pub(super) fn check(method: &str, message: &[u8]) -> Result<(), Failure> {
    check_parts(parts(method), message)
}

/// The same for what an agent sends over its connection.
///
/// # Errors
/// Which list is too long.
pub(super) fn check_sent(message: &[u8]) -> Result<(), Failure> {
    check_parts(SENT, message)
}

fn check_parts(parts: &[Part], message: &[u8]) -> Result<(), Failure> {
    let message = message.get(PREFIX_BYTES..);
    let Some((name, most, detail)) = message.and_then(|message| too_long(parts, message, usize::MAX)) else {
        return Ok(());
    };
    let message = format!("{name} has more than {most} entries");
    Err(Failure::new(Reason::TooLarge, message).detail(detail).field(name).hint("split it"))
}

/// The first list that has more entries than it may, or more than `most`: its name, how many it may have, and the detail of its
/// refusal.
fn too_long(parts: &[Part], message: &[u8], most: usize) -> Option<(String, usize, Detail)> {
    let mut lists = parts.iter().flat_map(|part| part.lists.iter().map(move |list| (part, list)));
    let (part, list) = lists.find(|(part, list)| {
        let mut left = part.most.min(most);
        count(message, part.at.iter().chain(list.path), &mut left) == Counted::TooMany
    })?;
    Some((format!("{}{}", part.name, list.name), part.most, list.detail))
}

/// The numbers of the fields that lead to a list.
type Path = Chain<Iter<'static, u32>, Iter<'static, u32>>;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Counted {
    Fits,
    TooMany,
}

/// Takes from `left` the entries at the end of the path.
fn count(mut message: &[u8], mut path: Path, left: &mut usize) -> Counted {
    let Some(wanted) = path.next() else { return Counted::Fits };
    let is_list = path.clone().next().is_none();
    while !message.is_empty() {
        let Ok((number, kind)) = decode_key(&mut message) else { break };
        if number != *wanted || kind != WireType::LengthDelimited {
            if skip_field(kind, number, &mut message, DecodeContext::default()).is_err() {
                break;
            }
            continue;
        }
        let length = decode_varint(&mut message).ok().and_then(|length| usize::try_from(length).ok());
        let Some((entry, rest)) = length.and_then(|length| message.split_at_checked(length)) else { break };
        message = rest;
        if is_list {
            let Some(fewer) = left.checked_sub(1) else { return Counted::TooMany };
            *left = fewer;
        } else if count(entry, path.clone(), left) == Counted::TooMany {
            return Counted::TooMany;
        }
    }
    Counted::Fits
}

#[cfg(test)]
mod tests {
    use aptix_model::wire::v1;
    use prost::Message;

    use super::*;

    const MOST: usize = 6;

    /// The list of the message that has more entries than [`MOST`].
    fn named(parts: &[Part], message: &impl Message) -> Option<String> {
        too_long(parts, &message.encode_to_vec(), MOST).map(|(name, ..)| name)
    }

    /// The numbers are those of the protocol: every list is found, and as long as it is.
    #[test]
    fn every_list_is_counted() {
        use v1::file_patch::Action;
        let submit = |action: Option<Action>, files: usize| {
            let files = vec![v1::FilePatch { action, ..v1::FilePatch::default() }; files];
            let edit = v1::Edit { files, ..v1::Edit::default() };
            let content = Some(v1::submit_batch_request::Content::Edit(edit));
            let request = v1::SubmitBatchRequest { content, ..v1::SubmitBatchRequest::default() };
            named(parts("/aptix.v1.BatchService/SubmitBatch"), &request)
        };
        let actions = |entries: usize| {
            let changes = vec![v1::Change::default(); entries];
            let (hunks, chunks) = (vec![v1::Hunk::default(); entries], vec![v1::Chunk::default(); entries]);
            [
                Action::LinePatch(v1::LinePatch { changes, ..v1::LinePatch::default() }),
                Action::SearchPatch(v1::SearchPatch { changes: vec![v1::SearchChange::default(); entries] }),
                Action::Replacements(v1::Replacements { steps: vec![v1::Replacement::default(); entries] }),
                Action::GitPatch(v1::GitPatch { hunks, ..v1::GitPatch::default() }),
                Action::ContextPatch(v1::ContextPatch { chunks, ..v1::ContextPatch::default() }),
                Action::EditorCommands(v1::EditorCommands { commands: vec![v1::EditorCommand::default(); entries] }),
            ]
        };
        assert_eq!(submit(None, MOST), None);
        assert_eq!(submit(None, MOST + 1), Some("edit.files".to_owned()));
        let names = EDIT.iter().skip(1).map(|list| format!("edit.{}", list.name));
        for ((fits, passes), name) in actions(MOST / 2).into_iter().zip(actions(MOST / 2 + 1)).zip(names) {
            assert_eq!(submit(Some(fits), 2), None);
            assert_eq!(submit(Some(passes), 2), Some(name));
        }
        let report = |files: usize, inside: (usize, usize), failures: usize, nearest: usize| {
            let file = v1::FileReport {
                warnings: vec![v1::Warning::default(); inside.0],
                changes: vec![v1::ChangeReport::default(); inside.1],
                ..v1::FileReport::default()
            };
            let failure = v1::Failure { nearest: vec![v1::Excerpt::default(); nearest], ..v1::Failure::default() };
            let (files, failures) = (vec![file; files], vec![failure; failures]);
            let report = Some(v1::Report { files, failures, ..v1::Report::default() });
            let request = v1::ReportBatchRequest { report, ..v1::ReportBatchRequest::default() };
            named(parts("/aptix.v1.AgentService/ReportBatch"), &request)
        };
        assert_eq!(report(MOST, (1, 1), MOST, 1), None);
        assert_eq!(report(MOST + 1, (0, 0), 0, 0), Some("report.files".to_owned()));
        assert_eq!(report(2, (MOST, 0), 0, 0), Some("report.files.warnings".to_owned()));
        assert_eq!(report(2, (0, MOST), 0, 0), Some("report.files.changes".to_owned()));
        assert_eq!(report(0, (0, 0), MOST + 1, 0), Some("report.failures".to_owned()));
        assert_eq!(report(0, (0, 0), 2, MOST), Some("report.failures.nearest".to_owned()));
    }

    fn hello(roots: usize, features: usize) -> v1::serve_request::Message {
        let (roots, features) = (vec![String::new(); roots], vec![String::new(); features]);
        v1::serve_request::Message::Hello(v1::Hello { roots, features, ..v1::Hello::default() })
    }

    #[test]
    fn every_list_that_an_agent_sends_is_counted() {
        use v1::answer::Answer;
        const MANY: usize = MOST + 1;
        let failure = || v1::Failure { nearest: vec![v1::Excerpt::default(); MANY], ..v1::Failure::default() };
        let result = |failure| v1::FileResult { result: Some(v1::file_result::Result::Failure(failure)) };
        let read = |results| Answer::ReadFiles(v1::ReadFilesResponse { results });
        let stat = |results| Answer::StatFiles(v1::StatFilesResponse { results });
        let list = |files, damaged| {
            let (files, damaged) = (vec![v1::FileState::default(); files], vec![v1::DamagedFile::default(); damaged]);
            Answer::ListFiles(v1::ListFilesResponse { files, damaged, ..v1::ListFilesResponse::default() })
        };
        let found = |matches, skipped| {
            let matches = vec![v1::SearchMatch::default(); matches];
            Answer::SearchFiles(v1::SearchFilesResponse { matches, skipped, ..v1::SearchFilesResponse::default() })
        };
        let skipped = || Some(v1::Skipped { paths: vec![String::new(); MANY], ..v1::Skipped::default() });
        let file = v1::FileReport::default();
        let of_file = |file: v1::FileReport| v1::Report { files: vec![file], ..v1::Report::default() };
        let reports = || {
            [
                v1::Report { files: vec![file.clone(); MANY], ..v1::Report::default() },
                of_file(v1::FileReport { normalized: vec![String::new(); MANY], ..file.clone() }),
                of_file(v1::FileReport { warnings: vec![v1::Warning::default(); MANY], ..file.clone() }),
                of_file(v1::FileReport { changes: vec![v1::ChangeReport::default(); MANY], ..file.clone() }),
                v1::Report { failures: vec![v1::Failure::default(); MANY], ..v1::Report::default() },
                v1::Report { failures: vec![failure()], ..v1::Report::default() },
                v1::Report { warnings: vec![v1::Warning::default(); MANY], ..v1::Report::default() },
            ]
        };
        let plan = |report, files| Answer::Prepare(v1::Plan { report, files });
        let places = v1::PlannedFile { places: vec![v1::Place::default(); MANY], evidence: None };
        let others = [
            Answer::Failure(failure()),
            read(vec![v1::FileResult::default(); MANY]),
            read(vec![result(failure())]),
            stat(vec![v1::FileResult::default(); MANY]),
            stat(vec![result(failure())]),
            list(MANY, 0),
            list(0, MANY),
            Answer::ListFiles(v1::ListFilesResponse { skipped: skipped(), ..v1::ListFilesResponse::default() }),
            found(MANY, None),
            found(0, skipped()),
            Answer::CallTool(v1::ToolAnswer { text: vec![String::new(); MANY], ..v1::ToolAnswer::default() }),
            Answer::ResolvePaths(v1::PathsAnswer { paths: vec![v1::ResolvedPath::default(); MANY] }),
        ];
        let plans = [plan(None, vec![v1::PlannedFile::default(); MANY]), plan(None, vec![places])];
        let answers = (others.into_iter().chain(reports().map(Answer::Preview)))
            .chain(reports().map(|report| plan(Some(report), Vec::new())))
            .chain(plans);
        let answers = answers.map(|answer| v1::Answer { question_id: 1, answer: Some(answer) });
        let sent = [hello(MANY, 0), hello(0, MANY)].into_iter().chain(answers.map(v1::serve_request::Message::Answer));
        let found = sent.map(|message| {
            let message = v1::ServeRequest { message: Some(message) };
            named(SENT, &message)
        });
        let names =
            SENT.iter().flat_map(|part| part.lists.iter().map(|list| Some(format!("{}{}", part.name, list.name))));
        assert_eq!(found.collect::<Vec<_>>(), names.collect::<Vec<_>>());
    }

    /// Lines and names, which have no ids, are counted apart.
    #[test]
    fn every_list_of_texts_is_counted() {
        use v1::change::Operation;
        use v1::file_patch::{Action, Target};
        const MANY: usize = MOST + 1;
        let texts = || vec![String::new(); MANY];
        let change = |operation| {
            let changes = vec![v1::Change { operation: Some(operation), ..v1::Change::default() }];
            Action::LinePatch(v1::LinePatch { changes, ..v1::LinePatch::default() })
        };
        let hunks = || vec![v1::Hunk { lines: vec![v1::HunkLine::default(); MANY], ..v1::Hunk::default() }];
        let diff = || v1::GitPatch { hunks: hunks(), ..v1::GitPatch::default() };
        let chunk =
            |chunk| Action::ContextPatch(v1::ContextPatch { chunks: vec![chunk], ..v1::ContextPatch::default() });
        let (expected, empty) = (texts(), v1::ReplaceLines::default());
        let actions = [
            change(Operation::Insert(v1::InsertLines { new_lines: texts(), ..v1::InsertLines::default() })),
            change(Operation::Replace(v1::ReplaceLines { expected_original_lines: expected, ..empty.clone() })),
            change(Operation::Replace(v1::ReplaceLines { new_lines: texts(), ..empty })),
            change(Operation::Delete(v1::DeleteLines { expected_original_lines: texts(), ..Default::default() })),
            Action::GitPatch(diff()),
            Action::GitSeries(v1::GitSeries { parts: vec![diff()] }),
            chunk(v1::Chunk { anchors: texts(), ..v1::Chunk::default() }),
            chunk(v1::Chunk { lines: vec![v1::ChunkLine::default(); MANY], ..v1::Chunk::default() }),
        ];
        let files = actions.map(|action| v1::FilePatch { action: Some(action), ..v1::FilePatch::default() });
        let readings = [(texts(), Vec::new()), (Vec::new(), texts())].map(|(stripped, written)| v1::FilePatch {
            target: Some(Target::PathReadings(v1::PathReadings { stripped, written })),
            ..v1::FilePatch::default()
        });
        let of_files =
            readings.into_iter().chain(files).map(|file| v1::Edit { files: vec![file], ..v1::Edit::default() });
        let edits = [v1::Edit { required_features: texts(), ..v1::Edit::default() }].into_iter().chain(of_files);
        let found = edits.map(|edit| {
            let content = Some(v1::submit_batch_request::Content::Edit(edit));
            let request = v1::SubmitBatchRequest { content, ..v1::SubmitBatchRequest::default() };
            named(parts("/aptix.v1.BatchService/SubmitBatch"), &request)
        });
        let names = EDIT_TEXTS.iter().map(|list| Some(format!("edit.{}", list.name)));
        assert_eq!(found.collect::<Vec<_>>(), names.collect::<Vec<_>>());
        let blobs = v1::FindMissingBlobsRequest { sha256: texts(), ..Default::default() };
        assert_eq!(named(parts("/aptix.v1.FileService/FindMissingBlobs"), &blobs).as_deref(), Some("sha256"));
        let filter = |session_ids, doc_paths| {
            let filter = Some(v1::EventFilter { session_ids, doc_paths, ..v1::EventFilter::default() });
            let request = v1::WatchWorkspaceRequest { filter, ..v1::WatchWorkspaceRequest::default() };
            named(parts("/aptix.v1.WorkspaceService/WatchWorkspace"), &request)
        };
        assert_eq!(filter(texts(), Vec::new()).as_deref(), Some("filter.sessionIds"));
        assert_eq!(filter(Vec::new(), texts()).as_deref(), Some("filter.docPaths"));
    }

    /// A batch of the workstation has the lists of an edit and those of a report.
    #[test]
    fn a_local_batch_has_the_lists_of_both() {
        let local = |files: usize, reported: usize, warnings: usize| {
            let edit = Some(v1::Edit { files: vec![v1::FilePatch::default(); files], ..v1::Edit::default() });
            let file = v1::FileReport { normalized: vec![String::new(); warnings], ..v1::FileReport::default() };
            let report = Some(v1::Report { files: vec![file; reported], ..v1::Report::default() });
            let request = v1::ReportLocalBatchRequest { edit, report, ..v1::ReportLocalBatchRequest::default() };
            named(parts("/aptix.v1.AgentService/ReportLocalBatch"), &request)
        };
        assert_eq!(local(MOST, MOST, 1), None);
        assert_eq!(local(MOST + 1, 0, 0).as_deref(), Some("edit.files"));
        assert_eq!(local(0, MOST + 1, 0).as_deref(), Some("report.files"));
        assert_eq!(local(0, 2, MOST).as_deref(), Some("report.files.normalized"));
    }

    #[test]
    fn what_is_no_message_passes() {
        for bytes in
            [&b""[..], b"\0\0\0\0\0", b"\0\0\0\0\0\x1a\xff\xff\xff\xff\x0f", b"\0\0\0\0\0\xff\xff\xff\xff\xff\xff"]
        {
            assert!(check("/aptix.v1.BatchService/SubmitBatch", bytes).is_ok());
        }
        assert!(check("/aptix.v1.FileService/ReadFile", &[0xff; 100]).is_ok());
    }
}
