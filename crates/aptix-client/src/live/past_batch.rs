//! A batch of the history, as a batch of the workstation that a server may know of: of a withheld file it has the path and what
//! its author called it, and no digest.

use std::collections::HashMap;

use aptix_engine::target::ValidTarget;
use aptix_model::batch::Batch;
use aptix_model::digest::Sha256Digest;
use aptix_model::failure::Failure;
use aptix_model::live::{FileInfo, FileSelector};
use aptix_model::path::DocPath;
use aptix_model::protection::KEY_HEAD_BYTES;
use aptix_model::report::{FileStatus, Withheld, Written};

use super::IsOver;
use super::difference::{Difference, HeldFile, OnDisk, TOGETHER, absent};
use super::local_batch::{Described, of_differences};
use super::read::stat_on_disk;
use crate::policy::Policy;
use crate::policy::disclosure::{Disclosure, Inside};
use crate::workspace::keep::history::entries::Entry;
use crate::workspace::keep::history::on_disk;
use crate::workspace::keep::history::past_file::PastFile;
use crate::workspace::keep::history::summary::FileSummary;
use crate::workspace::read::listing::Listings;
use crate::workspace::read::resolve::resolve_to_read;
use crate::workspace::roots::workspace::Workspace;

/// A batch of the history.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct PastBatch {
    /// The batch, and what became of its files.
    pub(crate) described: Described,
    /// How it left its files; for each, what was there before the batch counts as what the server held.
    pub(crate) left: Vec<Difference>,
    /// Those of them that are on disk as the batch left them.
    pub(crate) current: Vec<Difference>,
}

/// A batch of the history as the server of a policy may know of it; `None` if it has no file in an open root.
///
/// # Errors
/// The caller does not wait any more.
pub(crate) fn past_batch(
    workspace: &Workspace,
    policy: &Policy,
    entry: &Entry,
    is_over: IsOver<'_>,
) -> Result<Option<PastBatch>, Failure> {
    let changes = changes(workspace, entry);
    let selectors: Vec<_> = changes.iter().map(|change| change.selector.clone()).collect();
    let mut infos = Vec::with_capacity(selectors.len());
    for part in selectors.chunks(TOGETHER) {
        infos.extend(stat_on_disk(workspace, policy, part, is_over)?);
    }
    let mut rule = Rule { workspace, disclosure: Disclosure::new(workspace, policy), listings: Listings::default() };
    let (mut left, mut current) = (Vec::new(), Vec::new());
    for (change, info) in changes.iter().zip(&infos) {
        let difference = Difference { file: change.file.clone(), now: rule.left(change, info) };
        if let OnDisk::Bytes(written) = difference.now
            && digest(info) == Some(written.sha256)
        {
            current.push(difference.clone());
        }
        left.push(difference);
    }
    if left.is_empty() {
        return Ok(None);
    }
    let mut described = of_differences(workspace, None, &left);
    for (report, change) in described.report.files.iter_mut().zip(&changes).filter(|(file, _)| file.withheld.is_some())
    {
        report.status = change.status();
    }
    add_words(&mut described.batch, entry, &changes);
    Ok(Some(PastBatch { described, left, current }))
}

fn digest(info: &Result<FileInfo, Failure>) -> Option<Sha256Digest> {
    info.as_ref().ok()?.text.as_ref().map(|text| text.sha256)
}

/// Adds what its author called the batch and its files. A file that moved has its words at the path that it had.
fn add_words(batch: &mut Batch, entry: &Entry, changes: &[Change]) {
    let Some(summary) = &entry.summary else { return };
    (batch.label, batch.key) = (summary.label.clone(), summary.key.clone());
    let mut called: HashMap<&str, Vec<&FileSummary>> = HashMap::new();
    for file in &summary.files {
        called.entry(file.path()).or_default().push(file);
    }
    for (patch, Change { file, .. }) in batch.files.iter_mut().zip(changes) {
        let found = called.get(file.path.as_str()).map(Vec::as_slice).unwrap_or_default();
        let named = found.iter().find(|summary| summary.doc_path() == file.doc_path.as_str());
        // The root may have had another name.
        let only = if let [only] = found { Some(only) } else { None };
        if let Some(file) = named.or(only) {
            (patch.label, patch.key) = (file.label.clone(), file.key.clone());
        }
    }
}

/// A path of an entry, and what was there before and after its batch.
struct Change {
    file: HeldFile,
    selector: FileSelector,
    before: Option<Image>,
    after: Option<Image>,
}

/// Content that an entry describes.
struct Image {
    sha256: Sha256Digest,
    /// What it begins with and how many bytes it has, if the entry, or the disk, has it.
    kept: Option<(Vec<u8>, u64)>,
}

impl Image {
    fn new(sha256: Option<Sha256Digest>, bytes: Option<&Vec<u8>>) -> Option<Self> {
        let head = |bytes: &Vec<u8>| bytes.get(..KEY_HEAD_BYTES).unwrap_or(bytes).to_owned();
        Some(Self { sha256: sha256?, kept: bytes.map(|bytes| (head(bytes), bytes.len() as u64)) })
    }
}

impl Change {
    const fn status(&self) -> FileStatus {
        match (&self.before, &self.after) {
            (None, _) => FileStatus::Created,
            (Some(_), None) => FileStatus::Deleted,
            (Some(_), Some(_)) => FileStatus::Modified,
        }
    }
}

/// Content before and after a batch.
type Sides = [Option<Image>; 2];

/// The files of an entry in open roots.
pub(crate) fn paths(workspace: &Workspace, entry: &Entry) -> Vec<DocPath> {
    let of_file = |file: &PastFile| {
        let root = workspace.roots().iter().position(|root| root.path() == file.root)?;
        let paths = std::iter::once(&file.path).chain(&file.moved_to);
        Some(paths.filter_map(move |path| Some(HeldFile::in_root(workspace, root, path, None)?.doc_path)).collect())
    };
    entry.files.iter().filter_map(of_file).collect::<Vec<Vec<_>>>().concat()
}

/// What an entry says of each path in open roots: of a file that moved, of two.
fn changes(workspace: &Workspace, entry: &Entry) -> Vec<Change> {
    let images = on_disk::images(workspace, entry).unwrap_or_default();
    let mut found: Vec<(usize, &str, Sides)> = Vec::new();
    let mut known: HashMap<(usize, &str), usize> = HashMap::new();
    let mut add = |root: usize, path, sides: Sides| {
        let index = *known.entry((root, path)).or_insert(found.len());
        match found.get_mut(index) {
            // Another file moved away from here, or to here.
            Some((.., both)) => both.iter_mut().zip(sides).for_each(|(side, more)| *side = more.or(side.take())),
            None => found.push((root, path, sides)),
        }
    };
    for (index, file) in entry.files.iter().enumerate() {
        let Some(root) = workspace.roots().iter().position(|root| root.path() == file.root) else { continue };
        let images = images.get(index);
        let before = Image::new(file.digest_before(), images.and_then(|images| images.before.as_ref()));
        let after = Image::new(file.digest_after(), images.and_then(|images| images.after.as_ref()));
        match &file.moved_to {
            None => add(root, &file.path, [before, after]),
            Some(to) => {
                add(root, &file.path, [before, None]);
                add(root, to, [None, after]);
            }
        }
    }
    let change = |(root, path, [before, after]): (usize, &str, Sides)| {
        let file = HeldFile::in_root(workspace, root, path, before.as_ref().map(|image| image.sha256))?;
        let selector = file.selector(workspace)?;
        Some(Change { file, selector, before, after })
    };
    found.into_iter().filter(|(.., sides)| sides.iter().any(Option::is_some)).filter_map(change).collect()
}

/// The egress rule for the files of one entry.
struct Rule<'w> {
    workspace: &'w Workspace,
    disclosure: Disclosure<'w>,
    listings: Listings,
}

impl Rule<'_> {
    /// How a batch left a file, as far as the server may know: by what is there now, and by the content before and after.
    fn left(&mut self, change: &Change, info: &Result<FileInfo, Failure>) -> OnDisk {
        let now = info.as_ref().err().map(|failure| absent(failure).unwrap_or(OnDisk::Withheld(Withheld::Unknown)));
        if let Some(OnDisk::Withheld(why)) = now {
            return OnDisk::Withheld(why);
        }
        let images = [&change.before, &change.after].into_iter().flatten();
        if let Some(why) = images.into_iter().find_map(|image| self.withheld(change, image, digest(info))) {
            return OnDisk::Withheld(why);
        }
        let Some(after) = &change.after else { return OnDisk::Gone };
        let size_bytes = match (&after.kept, info) {
            (Some((_, size_bytes)), _) => *size_bytes,
            (None, info) => info.as_ref().map_or(0, |info| info.size_bytes),
        };
        OnDisk::Bytes(Written { sha256: after.sha256, size_bytes })
    }

    /// Why nothing of this content is disclosed, if nothing is. What is on disk now was looked at already.
    fn withheld(&mut self, change: &Change, image: &Image, now: Option<Sha256Digest>) -> Option<Withheld> {
        if now == Some(image.sha256) {
            return None;
        }
        let Some((head, _)) = &image.kept else { return Some(Withheld::Unknown) };
        let target = match &change.selector {
            FileSelector::DocPath(key) => ValidTarget::DocPath(key.clone()),
            FileSelector::Path(path) => ValidTarget::Path(path.clone()),
        };
        match resolve_to_read(self.workspace, &mut self.listings, &target) {
            Ok(place) => self.disclosure.withheld(&place, Inside { names: 0, head }),
            Err(_) => Some(Withheld::Unknown),
        }
    }
}
