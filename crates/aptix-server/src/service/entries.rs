//! Counts the entries of a message before it is decoded: an entry of two bytes on the wire takes hundreds in memory.

use aptix_model::failure::Failure;
use aptix_model::id_block;
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

const SUBMIT: &[List] = &[
    List { path: &[3, 3], name: "edit.files", detail: Detail::Files },
    List { path: &[3, 3, 6, 2], name: "edit.files.linePatch.changes", detail: Detail::Changes },
    List { path: &[3, 3, 10, 1], name: "edit.files.searchPatch.changes", detail: Detail::Changes },
    List { path: &[3, 3, 11, 1], name: "edit.files.replacements.steps", detail: Detail::Changes },
    List { path: &[3, 3, 12, 7], name: "edit.files.gitPatch.hunks", detail: Detail::Changes },
    List { path: &[3, 3, 13, 2], name: "edit.files.contextPatch.chunks", detail: Detail::Changes },
    List { path: &[3, 3, 18, 1], name: "edit.files.editorCommands.commands", detail: Detail::Changes },
    List { path: &[3, 3, 17, 1], name: "edit.files.gitSeries.parts", detail: Detail::Changes },
    List { path: &[3, 3, 17, 1, 7], name: "edit.files.gitSeries.parts.hunks", detail: Detail::Changes },
    List { path: &[3, 3, 16, 3], name: "edit.files.quote.names", detail: Detail::Text },
];

const REPORT: &[List] = &[
    List { path: &[4, 2], name: "report.files", detail: Detail::Files },
    List { path: &[4, 2, 7], name: "report.files.normalized", detail: Detail::Text },
    List { path: &[4, 2, 8], name: "report.files.warnings", detail: Detail::Text },
    List { path: &[4, 2, 9], name: "report.files.changes", detail: Detail::Changes },
    List { path: &[4, 3], name: "report.failures", detail: Detail::Text },
    List { path: &[4, 6], name: "report.warnings", detail: Detail::Text },
    List { path: &[4, 3, 10], name: "report.failures.nearest", detail: Detail::Text },
];

const SENT: &[List] = &[
    List { path: &[1, 7], name: "hello.roots", detail: Detail::Text },
    List { path: &[1, 9], name: "hello.features", detail: Detail::Text },
    List { path: &[2, 2, 10], name: "answer.failure.nearest", detail: Detail::Text },
    List { path: &[2, 3, 1], name: "answer.readFiles.results", detail: Detail::Files },
    List { path: &[2, 3, 1, 2, 10], name: "answer.readFiles.results.failure.nearest", detail: Detail::Text },
    List { path: &[2, 4, 1], name: "answer.statFiles.results", detail: Detail::Files },
    List { path: &[2, 4, 1, 2, 10], name: "answer.statFiles.results.failure.nearest", detail: Detail::Text },
    List { path: &[2, 5, 1], name: "answer.listFiles.files", detail: Detail::Files },
    List { path: &[2, 5, 3], name: "answer.listFiles.damaged", detail: Detail::Files },
    List { path: &[2, 6, 1], name: "answer.searchFiles.matches", detail: Detail::Files },
    List { path: &[2, 7, 2], name: "answer.preview.files", detail: Detail::Files },
    List { path: &[2, 7, 2, 7], name: "answer.preview.files.normalized", detail: Detail::Text },
    List { path: &[2, 7, 2, 8], name: "answer.preview.files.warnings", detail: Detail::Text },
    List { path: &[2, 7, 2, 9], name: "answer.preview.files.changes", detail: Detail::Changes },
    List { path: &[2, 7, 3], name: "answer.preview.failures", detail: Detail::Text },
    List { path: &[2, 7, 3, 10], name: "answer.preview.failures.nearest", detail: Detail::Text },
    List { path: &[2, 7, 6], name: "answer.preview.warnings", detail: Detail::Text },
];

const LOCAL: &[List] = &[
    List { path: &[5, 3], name: "edit.files", detail: Detail::Files },
    List { path: &[5, 3, 6, 2], name: "edit.files.linePatch.changes", detail: Detail::Changes },
    List { path: &[5, 3, 10, 1], name: "edit.files.searchPatch.changes", detail: Detail::Changes },
    List { path: &[5, 3, 11, 1], name: "edit.files.replacements.steps", detail: Detail::Changes },
    List { path: &[5, 3, 12, 7], name: "edit.files.gitPatch.hunks", detail: Detail::Changes },
    List { path: &[5, 3, 13, 2], name: "edit.files.contextPatch.chunks", detail: Detail::Changes },
    List { path: &[5, 3, 18, 1], name: "edit.files.editorCommands.commands", detail: Detail::Changes },
    List { path: &[5, 3, 17, 1], name: "edit.files.gitSeries.parts", detail: Detail::Changes },
    List { path: &[5, 3, 17, 1, 7], name: "edit.files.gitSeries.parts.hunks", detail: Detail::Changes },
    List { path: &[5, 3, 16, 3], name: "edit.files.quote.names", detail: Detail::Text },
    List { path: &[6, 2], name: "report.files", detail: Detail::Files },
    List { path: &[6, 2, 7], name: "report.files.normalized", detail: Detail::Text },
    List { path: &[6, 2, 8], name: "report.files.warnings", detail: Detail::Text },
    List { path: &[6, 2, 9], name: "report.files.changes", detail: Detail::Changes },
    List { path: &[6, 3], name: "report.failures", detail: Detail::Text },
    List { path: &[6, 6], name: "report.warnings", detail: Detail::Text },
    List { path: &[6, 3, 10], name: "report.failures.nearest", detail: Detail::Text },
];

const FILES: &[List] = &[List { path: &[2], name: "files", detail: Detail::Files }];

const SEARCH: &[List] = &[List { path: &[4], name: "globs", detail: Detail::Text }];

/// Refuses the message of a call of this method if one of its lists has more entries than any batch. What is no message
/// passes: decoding reports what is wrong with it.
///
/// # Errors
/// Which list is too long.
pub(super) fn check(method: &str, message: &[u8]) -> Result<(), Failure> {
    let lists = match method {
        "/aptix.v1.BatchService/SubmitBatch" => SUBMIT,
        "/aptix.v1.AgentService/ReportBatch" => REPORT,
        "/aptix.v1.AgentService/ReportLocalBatch" => LOCAL,
        "/aptix.v1.FileService/ReadFiles" | "/aptix.v1.FileService/StatFiles" => FILES,
        "/aptix.v1.FileService/SearchFiles" => SEARCH,
        _ => return Ok(()),
    };
    check_lists(lists, message)
}

/// The same for what an agent sends over its connection.
///
/// # Errors
/// Which list is too long.
pub(super) fn check_sent(message: &[u8]) -> Result<(), Failure> {
    check_lists(SENT, message)
}

fn check_lists(lists: &[List], message: &[u8]) -> Result<(), Failure> {
    let message = message.get(PREFIX_BYTES..);
    let Some(list) = message.and_then(|message| too_long(lists, message, id_block::ENTRIES)) else { return Ok(()) };
    let message = format!("{} has more than {} entries", list.name, id_block::ENTRIES);
    let failure = Failure::new(Reason::TooLarge, message).detail(list.detail).field(list.name);
    Err(failure.hint("split it"))
}

/// The first of the lists that has more than `most` entries.
fn too_long<'l>(lists: &'l [List], message: &[u8], most: usize) -> Option<&'l List> {
    lists.iter().find(|list| {
        let mut left = most;
        count(message, list.path, &mut left) == Counted::TooMany
    })
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Counted {
    Fits,
    TooMany,
}

/// Takes from `left` the entries at the end of the path.
fn count(mut message: &[u8], path: &[u32], left: &mut usize) -> Counted {
    let Some((wanted, inside)) = path.split_first() else { return Counted::Fits };
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
        if inside.is_empty() {
            let Some(fewer) = left.checked_sub(1) else { return Counted::TooMany };
            *left = fewer;
        } else if count(entry, inside, left) == Counted::TooMany {
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

    /// The numbers are those of the protocol: every list is found, and as long as it is.
    #[test]
    fn every_list_is_counted() {
        use v1::file_patch::Action;
        const MOST: usize = 6;
        let submit = |action: Option<Action>, files: usize| {
            let files = vec![v1::FilePatch { action, ..v1::FilePatch::default() }; files];
            let edit = v1::Edit { files, ..v1::Edit::default() };
            let content = Some(v1::submit_batch_request::Content::Edit(edit));
            let request = v1::SubmitBatchRequest { content, ..v1::SubmitBatchRequest::default() };
            too_long(SUBMIT, &request.encode_to_vec(), MOST).map(|list| list.name)
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
        assert_eq!(submit(None, MOST + 1), Some("edit.files"));
        let names = SUBMIT.iter().skip(1).map(|list| list.name);
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
            too_long(REPORT, &request.encode_to_vec(), MOST).map(|list| list.name)
        };
        assert_eq!(report(MOST, (1, 1), MOST, 1), None);
        assert_eq!(report(MOST + 1, (0, 0), 0, 0), Some("report.files"));
        assert_eq!(report(2, (MOST, 0), 0, 0), Some("report.files.warnings"));
        assert_eq!(report(2, (0, MOST), 0, 0), Some("report.files.changes"));
        assert_eq!(report(0, (0, 0), MOST + 1, 0), Some("report.failures"));
        assert_eq!(report(0, (0, 0), 2, MOST), Some("report.failures.nearest"));
    }

    #[test]
    fn every_list_that_an_agent_sends_is_counted() {
        use v1::answer::Answer;
        const MOST: usize = 6;
        const MANY: usize = MOST + 1;
        let failure = || v1::Failure { nearest: vec![v1::Excerpt::default(); MANY], ..v1::Failure::default() };
        let result = |failure| v1::FileResult { result: Some(v1::file_result::Result::Failure(failure)) };
        let read = |results| Answer::ReadFiles(v1::ReadFilesResponse { results });
        let stat = |results| Answer::StatFiles(v1::StatFilesResponse { results });
        let list = |files, damaged| {
            let (files, damaged) = (vec![v1::FileState::default(); files], vec![v1::DamagedFile::default(); damaged]);
            Answer::ListFiles(v1::ListFilesResponse { files, damaged, ..v1::ListFilesResponse::default() })
        };
        let matches = vec![v1::SearchMatch::default(); MANY];
        let preview = |report: v1::Report| Answer::Preview(report);
        let file = v1::FileReport::default();
        let of_file = |file: v1::FileReport| preview(v1::Report { files: vec![file], ..v1::Report::default() });
        let answers = [
            Answer::Failure(failure()),
            read(vec![v1::FileResult::default(); MANY]),
            read(vec![result(failure())]),
            stat(vec![v1::FileResult::default(); MANY]),
            stat(vec![result(failure())]),
            list(MANY, 0),
            list(0, MANY),
            Answer::SearchFiles(v1::SearchFilesResponse { matches, ..v1::SearchFilesResponse::default() }),
            preview(v1::Report { files: vec![file.clone(); MANY], ..v1::Report::default() }),
            of_file(v1::FileReport { normalized: vec![String::new(); MANY], ..file.clone() }),
            of_file(v1::FileReport { warnings: vec![v1::Warning::default(); MANY], ..file.clone() }),
            of_file(v1::FileReport { changes: vec![v1::ChangeReport::default(); MANY], ..file }),
            preview(v1::Report { failures: vec![v1::Failure::default(); MANY], ..v1::Report::default() }),
            preview(v1::Report { failures: vec![failure()], ..v1::Report::default() }),
            preview(v1::Report { warnings: vec![v1::Warning::default(); MANY], ..v1::Report::default() }),
        ];
        let answers = answers.map(|answer| v1::Answer { question_id: 1, answer: Some(answer) });
        let hello = |roots, features| {
            let (roots, features) = (vec![String::new(); roots], vec![String::new(); features]);
            v1::serve_request::Message::Hello(v1::Hello { roots, features, ..v1::Hello::default() })
        };
        let sent = [hello(MANY, 0), hello(0, MANY)].into_iter();
        let sent = sent.chain(answers.map(v1::serve_request::Message::Answer));
        let found = sent.map(|message| {
            let message = v1::ServeRequest { message: Some(message) };
            too_long(SENT, &message.encode_to_vec(), MOST).map(|list| list.name)
        });
        assert_eq!(found.collect::<Vec<_>>(), SENT.iter().map(|list| Some(list.name)).collect::<Vec<_>>());
    }

    /// A batch of the workstation has the lists of an edit and those of a report.
    #[test]
    fn a_local_batch_has_the_lists_of_both() {
        let inside = |lists: &'static [List], at: u32| {
            let moved = move |list: &'static List| ([&[at], list.path.split_first().unwrap().1].concat(), list.name);
            lists.iter().map(moved)
        };
        let mut expected: Vec<_> = inside(SUBMIT, 5).chain(inside(REPORT, 6)).collect();
        let mut found: Vec<_> = LOCAL.iter().map(|list| (list.path.to_vec(), list.name)).collect();
        expected.sort();
        found.sort();
        assert_eq!(found, expected);
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
