//! The keys that the author of a document gave to its parts, for failures of parts that do not have their shape: there is no
//! batch to look them up in.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use super::fields::LISTED;
use crate::failure::Failure;

/// A file patch, as far as its text can be read.
struct FileText<'t> {
    key: Option<String>,
    changes: Vec<&'t RawValue>,
}

/// Adds to the failures that are listed the keys of the file patch and of the change that they are about, as far as the text of
/// a line patch has them.
pub(super) fn name(text: &str, failures: &mut [Failure]) {
    let Some(files) = member(text, "files").and_then(items) else { return };
    let mut known: BTreeMap<usize, Option<FileText<'_>>> = BTreeMap::new();
    for failure in failures.iter_mut().take(LISTED) {
        let Some(index) = failure.file_index else { continue };
        let file = known.entry(index).or_insert_with(|| {
            let text = files.get(index)?.get();
            let changes = member(text, "changes").and_then(items).unwrap_or_default();
            Some(FileText { key: key(text, "fileKey"), changes })
        });
        let Some(file) = file else { continue };
        failure.file_key.clone_from(&file.key);
        let change = failure.change_index.and_then(|change| file.changes.get(change));
        failure.change_key = change.and_then(|change| key(change.get(), "changeKey"));
    }
}

fn member<'t>(object: &'t str, name: &str) -> Option<&'t str> {
    serde_json::from_str::<BTreeMap<String, &RawValue>>(object).ok()?.get(name).map(|value| value.get())
}

fn items(list: &str) -> Option<Vec<&RawValue>> {
    serde_json::from_str(list).ok()
}

/// The key under this name, if it is a text that is not empty.
fn key(object: &str, name: &str) -> Option<String> {
    serde_json::from_str::<String>(member(object, name)?).ok().filter(|key| !key.is_empty())
}
