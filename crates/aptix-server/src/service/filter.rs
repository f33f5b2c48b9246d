//! Reads the filters of lists and streams. Everything that is wrong with a filter is reported at once.

use aptix_model::failure::Failure;
use aptix_model::reason::{Detail, Reason};
use aptix_model::record::UnixMillis;
use aptix_model::wire::{self, v1};

use crate::dispatcher::batch_filter::{AuthorPattern, BatchFilter};
use crate::dispatcher::event_filter::EventFilter;
use crate::dispatcher::file_pattern::FilePattern;

/// Entries of one list of a filter.
const FILTER_ENTRIES: usize = 100;

/// Bytes of all texts of a filter: each stream keeps its own.
const FILTER_BYTES: usize = 64 << 10;

/// Reads a filter of events.
pub(super) fn events(filter: v1::EventFilter) -> Result<EventFilter, Vec<Failure>> {
    let mut failures = Vec::new();
    check_texts(filter.session_ids.iter().chain(&filter.doc_paths), &mut failures);
    let filter = EventFilter {
        states: read_each("filter.states", filter.states, &mut failures, wire::batch_state),
        kinds: read_each("filter.kinds", filter.kinds, &mut failures, wire::event_kind),
        sessions: read_each("filter.sessionIds", filter.session_ids, &mut failures, |_, session| Ok(session)),
        files: files(filter.doc_paths, &mut failures),
    };
    if failures.is_empty() { Ok(filter) } else { Err(failures) }
}

/// Reads a filter of batches.
pub(super) fn batches(filter: v1::BatchFilter) -> Result<BatchFilter, Vec<Failure>> {
    let mut failures = Vec::new();
    let names = filter.authors.iter().map(|author| &author.name);
    check_texts(filter.session_ids.iter().chain(&filter.doc_paths).chain(names), &mut failures);
    let from = filter.created_from.as_ref().map(wire::millis);
    let before = filter.created_before.as_ref().map(wire::millis);
    let is_timed = from.is_some() || before.is_some();
    let times = from.unwrap_or(UnixMillis(0))..before.unwrap_or(UnixMillis(u64::MAX));
    let filter = BatchFilter {
        states: read_each("filter.states", filter.states, &mut failures, wire::batch_state),
        sessions: read_each("filter.sessionIds", filter.session_ids, &mut failures, |_, session| Ok(session)),
        files: files(filter.doc_paths, &mut failures),
        authors: read_each("filter.authors", filter.authors, &mut failures, author),
        created: is_timed.then_some(times),
    };
    if failures.is_empty() { Ok(filter) } else { Err(failures) }
}

fn check_texts<'a>(texts: impl Iterator<Item = &'a String>, failures: &mut Vec<Failure>) {
    let bytes: usize = texts.map(String::len).sum();
    if bytes > FILTER_BYTES {
        let message = format!("the texts of the filter have {bytes} bytes, at most {FILTER_BYTES} are taken");
        failures.push(Failure::new(Reason::TooLarge, message).detail(Detail::Text).field("filter"));
    }
}

fn files(patterns: Vec<String>, failures: &mut Vec<Failure>) -> Option<Vec<FilePattern>> {
    read_each("filter.docPaths", patterns, failures, |field, pattern| {
        FilePattern::new(&pattern).map_err(|error| {
            let failure = Failure::new(Reason::InvalidPath, error.to_string()).detail(error.detail()).field(field);
            failure.hint("name a file by its lower-case key, or a directory by that of its files up to a slash")
        })
    })
}

fn author(field: &str, author: v1::Actor) -> Result<AuthorPattern, Failure> {
    let is_any = author.kind == i32::from(v1::ActorKind::Unspecified);
    let kind = if is_any { None } else { Some(wire::actor_kind(&format!("{field}.kind"), author.kind)?) };
    Ok(AuthorPattern { kind, name: Some(author.name).filter(|name| !name.is_empty()) })
}

/// Reads a list of the filter; `None` if it is empty.
fn read_each<W, T>(
    field: &str,
    list: Vec<W>,
    failures: &mut Vec<Failure>,
    read: impl Fn(&str, W) -> Result<T, Failure>,
) -> Option<Vec<T>> {
    if list.len() > FILTER_ENTRIES {
        let message = format!("{field} has {} entries, at most {FILTER_ENTRIES} are taken", list.len());
        failures.push(Failure::new(Reason::TooLarge, message).detail(Detail::Text).field(field));
        return None;
    }
    let mut entries = Vec::new();
    for (index, entry) in list.into_iter().enumerate() {
        match read(&format!("{field}[{index}]"), entry) {
            Ok(entry) => entries.push(entry),
            Err(failure) => failures.push(failure),
        }
    }
    (!entries.is_empty()).then_some(entries)
}
