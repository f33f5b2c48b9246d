//! The changes of a file patch as a list of messages: read with every failure at its position, written with their ids.

use crate::failure::Failure;
use crate::id::ChangeId;

/// Most failures of one message that are reported.
const FAILURES: usize = 1000;

/// Takes down what is wrong. A message may have millions of wrong parts; nobody reads so many failures.
pub(super) fn note(failures: &mut Vec<Failure>, failure: Failure) {
    if failures.len() < FAILURES {
        failures.push(failure);
    }
}

/// Reads the changes of a file patch; whatever is wrong with one goes to `failures`. `read` is told the field of the
/// change.
pub(super) fn each<W, T>(
    file: usize,
    changes: Vec<W>,
    failures: &mut Vec<Failure>,
    read: impl Fn(&str, W) -> Result<T, Failure>,
) -> Vec<T> {
    let changes = changes.into_iter().enumerate().filter_map(|(position, change)| {
        let read = read(&format!("files[{file}].changes[{position}]"), change);
        read.map_err(|failure| note(failures, failure.change(position))).ok()
    });
    changes.collect()
}

/// Each change as a message, with its id, or an empty one where there are none.
pub(super) fn with_id<T, W>(changes: Vec<T>, ids: &[ChangeId], message: impl Fn(T, String) -> W) -> Vec<W> {
    let ids = ids.iter().map(|id| format!("{id}")).chain(core::iter::repeat(String::new()));
    changes.into_iter().zip(ids).map(|(change, id)| message(change, id)).collect()
}
