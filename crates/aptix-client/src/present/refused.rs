//! Keeps a batch that was refused on this machine, so that `show` and `log` know of it: its author's words, what it asked for, and
//! why nothing changed. Nothing is kept of the content of files that hold secrets.

use aptix_engine::target::ValidTarget;
use aptix_model::actor::Actor;
use aptix_model::batch::{Batch, FileEdit, FilePatch, Target};
use aptix_model::failure::Failure;
use aptix_model::id::BatchId;
use aptix_model::path::{DocPath, WorkspacePath};
use aptix_model::path_style::PathStyle;
use aptix_model::protection::{KEY_HEAD_BYTES, is_private_key};
use aptix_model::reason::Reason;
use aptix_model::tools::result::words::named;

use super::description::parts;
use super::untrusted::Name;
use crate::policy::Policy;
use crate::policy::egress::{Sight, secret};
use crate::policy::paths::Named;
use crate::workspace::keep::refused;
use crate::workspace::keep::refused::batch::{ChangeWords, RefusedBatch, RefusedFile};
use crate::workspace::read::listing::Listings;
use crate::workspace::read::open_file::OpenFile;
use crate::workspace::read::resolve::resolve;
use crate::workspace::roots::workspace::Workspace;

/// What stands for what was asked of a file that holds secrets.
const CLOSED: &str = "what was asked of this file is not kept, because it usually holds secrets";
/// What stands for a message that may quote such a file.
const CLOSED_MESSAGE: &str = "the message is not kept, because it may quote a file that usually holds secrets";
/// Reasons whose messages quote no content.
const WITHOUT_CONTENT: [Reason; 6] = [
    Reason::PolicyDenied,
    Reason::ApprovalRequired,
    Reason::InvalidPath,
    Reason::AmbiguousPath,
    Reason::FileMissing,
    Reason::FileExists,
];

/// Keeps a batch that was refused under an id, with who had it tried. One without files was not tried.
pub(crate) fn keep(
    workspace: &Workspace,
    policy: &Policy,
    tried: (BatchId, &Actor),
    batch: &Batch,
    failures: &[Failure],
) {
    if !batch.files.is_empty() {
        let bounds = (policy.retention.age, policy.retention.bytes);
        refused::keep(workspace, kept(workspace, policy, tried, batch, failures), bounds);
    }
}

fn kept(
    workspace: &Workspace,
    policy: &Policy,
    tried: (BatchId, &Actor),
    batch: &Batch,
    failures: &[Failure],
) -> RefusedBatch {
    let root = workspace.roots().first().filter(|_| workspace.roots().len() == 1).map(|root| root.name());
    let paths = PathStyle::among(workspace.roots().len());
    let mut listings = Listings::default();
    let files = batch.files.iter().enumerate().map(|(at, patch)| {
        let of_file = failures.iter().filter(|failure| failure.file_index == Some(at));
        let parts: Vec<_> = parts(patch).iter().map(|part| String::from_utf8_lossy(part).into_owned()).collect();
        let is_closed =
            is_closed(policy, patch, &parts, of_file) || leads_to_secrets(workspace, &mut listings, policy, patch);
        let (path, doc_path) = named(&patch.target, paths, root);
        let file = RefusedFile {
            path: path.to_owned(),
            doc_path: doc_path.map(|path| path.into_owned()),
            moved_to: patch.edit.moved_to().map(str::to_owned),
            label: patch.label.clone(),
            key: patch.key.clone(),
            changes: change_words(patch),
            parts: if is_closed { vec![format!("--- {0}\n+++ {0}\n{CLOSED}\n", Name(path))] } else { parts },
        };
        (file, is_closed)
    });
    let (files, are_closed): (Vec<_>, Vec<_>) = files.unzip();
    let is_any_closed = are_closed.contains(&true);
    let failures: Vec<_> = failures
        .iter()
        .map(|failure| match failure.file_index.and_then(|file| are_closed.get(file)) {
            Some(false) | None if !is_any_closed => failure.clone(),
            // The corrected document is that of the whole batch.
            Some(false) => Failure { next_action: None, ..failure.clone() },
            Some(true) | None => without_content(failure),
        })
        .collect();
    RefusedBatch::new(tried, (batch.label.clone(), batch.key.clone()), files, &failures)
}

/// What the author of a patch calls its changes; no other dialect than line patches has words for them.
fn change_words(patch: &FilePatch) -> Vec<ChangeWords> {
    match &patch.edit {
        FileEdit::LinePatch(lines) => {
            let words = lines.changes.iter();
            words
                .map(|change| ChangeWords { key: change.key.clone(), description: change.description.clone() })
                .collect()
        }
        edit => vec![ChangeWords::default(); edit.change_count()],
    }
}

/// Whether a file holds secrets by a name that it has or would have, or what was asked of it or is shown of it holds a private
/// key.
fn is_closed<'f>(
    policy: &Policy,
    patch: &FilePatch,
    parts: &[String],
    failures: impl Iterator<Item = &'f Failure> + Clone,
) -> bool {
    let readings: Vec<_> = match &patch.target {
        Target::Readings(readings) => readings.all().collect(),
        target => vec![target.as_str()],
    };
    let others = [patch.edit.moved_to(), patch.edit.copied_from()].into_iter().flatten();
    let found = failures.clone().filter_map(|failure| failure.path.as_deref());
    // With several roots a path begins with a root's name.
    let mut names = readings
        .into_iter()
        .chain(others)
        .chain(found)
        .flat_map(|path| [Some(path), path.split_once('/').map(|(_, rest)| rest)])
        .flatten();
    let excerpts = failures.flat_map(|failure| failure.nearest.iter().map(|near| &near.text).chain([&failure.message]));
    names.any(|path| secret(policy, Sight::of(Named { root: 0, path, real: path })).is_some())
        || parts.iter().chain(excerpts).any(|text| holds_key(patch.target.as_str(), text))
}

/// Whether a name leads to a file of secrets over a link, or to one that begins as a private key does.
fn leads_to_secrets(workspace: &Workspace, listings: &mut Listings, policy: &Policy, patch: &FilePatch) -> bool {
    let path = |path: &str| WorkspacePath::new(path).ok().map(ValidTarget::Path);
    let named: Vec<_> = match &patch.target {
        Target::DocPath(key) => vec![DocPath::new(key).ok().map(ValidTarget::DocPath)],
        Target::Path(name) => vec![path(name)],
        Target::Readings(readings) => readings.all().map(path).collect(),
    };
    let others = [patch.edit.moved_to(), patch.edit.copied_from()].into_iter().flatten().map(path);
    named.into_iter().chain(others).flatten().any(|target| {
        // Nothing was read, and nothing is quoted, of what cannot be found or opened.
        let Ok(place) = resolve(workspace, listings, &target) else { return false };
        let opened = OpenFile::at(workspace, listings, &place).ok().flatten();
        let head = opened.and_then(|file| file.head(KEY_HEAD_BYTES).ok()).unwrap_or_default();
        let real = place.real();
        secret(policy, Sight { links: &place.links, head: &head, ..Sight::of(Named::of(&place, &real)) }).is_some()
    })
}

/// Whether a text has a line that begins a private key, after the sign of a diff or not.
fn holds_key(path: &str, text: &str) -> bool {
    let begins = |line: &str| is_private_key(path, line.as_bytes());
    text.contains("PRIVATE KEY") && text.lines().any(|line| begins(line) || line.get(1..).is_some_and(begins))
}

fn without_content(failure: &Failure) -> Failure {
    let is_quoted = !WITHOUT_CONTENT.contains(&failure.reason);
    let message = if is_quoted { CLOSED_MESSAGE.to_owned() } else { failure.message.clone() };
    let hint = failure.hint.clone().filter(|_| !is_quoted);
    Failure { message, hint, nearest: Vec::new(), current_sha256: None, next_action: None, ..failure.clone() }
}
