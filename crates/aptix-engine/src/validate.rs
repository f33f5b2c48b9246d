//! Everything that can be said about a batch without a file: all violations at once, each with its field.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use aptix_model::batch::{Batch, Content, ContextPatch, FileEdit, FilePatch, GitPatch, Presence, VERBATIM};
use aptix_model::digest::Sha256Digest;
use aptix_model::failure::Failure;
use aptix_model::limits::Limits;
use aptix_model::path::{DocPath, WorkspacePath};

use crate::checking::regexes::Regexes;
use crate::checking::targets;
use crate::checking::violation::Violation;
use crate::dialect::anchor_edit;
use crate::dialect::quote::{self, ValidQuote};
use crate::dialect::replacements::check::ValidStep;
use crate::dialect::search_patch::check::ValidSearch;
use crate::dialect::{context_patch, git_patch, line_patch, replacements, search_patch};
use crate::findings::Findings;
use crate::shown;

/// A batch in which [`validate`] found nothing wrong. Only this can be planned.
#[derive(Clone, Debug)]
pub struct ValidBatch<'a> {
    /// The batch as its author wrote it.
    pub batch: &'a Batch,
    files: Vec<ValidFile<'a>>,
    quotes: Vec<ValidQuote<'a>>,
}

impl<'a> ValidBatch<'a> {
    /// The file patches, in the batch's order.
    #[must_use]
    pub fn files(&self) -> &[ValidFile<'a>] {
        &self.files
    }

    /// Has whole texts written without a look at the files in their places, of these file patches by position: what becomes
    /// of them then tells nothing of those files.
    pub fn blind(&mut self, is_blind: impl Fn(usize) -> bool) {
        for (index, file) in self.files.iter_mut().enumerate() {
            file.is_blind = is_blind(index);
        }
    }

    /// The blocks of the answer that are no edits, in the batch's order.
    #[must_use]
    pub fn quotes(&self) -> &[ValidQuote<'a>] {
        &self.quotes
    }
}

/// A file patch in which nothing is wrong.
#[derive(Clone, Debug)]
pub struct ValidFile<'a> {
    /// Whether a whole text is written without a look at the file in its place.
    is_blind: bool,
    /// The file patch as its author wrote it.
    pub patch: &'a FilePatch,
    /// Which file.
    pub target: ValidTarget,
    /// The path that it is renamed to, or the file that it is made a copy of.
    pub other: Option<ValidTarget>,
    /// What the file must be for the edit to apply.
    pub base: Base,
    /// What happens to it.
    pub edit: ValidEdit<'a>,
}

impl ValidFile<'_> {
    /// Whether a whole text is written without a look at the file in its place.
    pub(crate) const fn is_blind(&self) -> bool {
        self.is_blind
    }
}

/// Which file, checked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ValidTarget {
    /// A lower-case key that begins with a root's name.
    DocPath(DocPath),
    /// A path in the workspace, in its real case.
    Path(WorkspacePath),
}

/// What a file must be for an edit to apply.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Base {
    /// Present.
    MustExist,
    /// Absent.
    MustNotExist,
    /// Present, with these bytes or this canonical text.
    MustMatch(Sha256Digest),
    /// Present or absent.
    Any,
}

/// What happens to a file, checked.
#[derive(Clone, Debug)]
pub enum ValidEdit<'a> {
    /// Lines come and go; sorted top to bottom, disjoint.
    Lines(Vec<LineChange<'a>>),
    /// The whole content is given, and brought into the form in which files are created.
    Content(&'a Content),
    /// The whole content is given, and written as it is.
    Verbatim(&'a Content),
    /// The file goes.
    Delete,
    /// Lines come and go beside a line that is described.
    Anchor(Box<anchor_edit::ValidAnchorEdit<'a>>),
    /// Texts are searched for in the file as it is, and replaced at once.
    Search(Vec<ValidSearch<'a>>),
    /// Texts are searched for and replaced one after the other.
    Steps(Vec<ValidStep<'a>>),
    /// Lines come and go where the lines around them stand.
    Context(&'a ContextPatch),
    /// What a diff says of the file; its hunks are well-formed, and in order.
    Diff(&'a GitPatch),
    /// What the parts of a diff say of the file, one after the other.
    Series(&'a [GitPatch]),
}

/// One change of lines. Insert, replace and delete are all "below `above` lines, `removed` lines go and
/// `new_lines` come".
///
/// A patch may have a great many: positions and line numbers take no more room than they need.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LineChange<'a> {
    index: u32,
    above: u32,
    /// What the lines that go are, verbatim.
    pub expected: &'a [String],
    /// The lines that come.
    pub new_lines: &'a [String],
}

impl<'a> LineChange<'a> {
    /// Positions and lines that are in memory are far fewer than 2^32, and line numbers end at 2^31.
    pub(crate) fn new(index: usize, above: usize, expected: &'a [String], new_lines: &'a [String]) -> Self {
        let narrow = |number| u32::try_from(number).unwrap_or(u32::MAX);
        Self { index: narrow(index), above: narrow(above), expected, new_lines }
    }

    /// Position of the change in its file patch, from 0.
    #[must_use]
    pub const fn index(&self) -> usize {
        self.index as usize
    }

    /// How many lines lie above.
    #[must_use]
    pub const fn above(&self) -> usize {
        self.above as usize
    }

    /// How many lines go: as many as are expected.
    #[must_use]
    pub const fn removed(&self) -> usize {
        self.expected.len()
    }
}

/// Checks a batch against everything that needs no file.
///
/// # Errors
/// What is wrong with the batch, everything at once: up to a hundred failures, then how many more there are.
pub fn validate<'a>(batch: &'a Batch, limits: &Limits) -> Result<ValidBatch<'a>, Vec<Failure>> {
    let mut findings = Findings::default();
    if let Some((field, violation)) = too_many(batch, limits) {
        findings.add(|| violation.failure().field(field));
        return Err(findings.into_failures());
    }
    let mut site =
        Site { findings: &mut findings, limits, regexes: Regexes::default(), file: None, change: None, above: 0 };
    site.check_text("batchLabel", batch.label.as_deref());
    site.check_text("batchKey", batch.key.as_deref());
    let mut files = Vec::with_capacity(batch.files.len());
    let mut keys = Keys::default();
    for (index, patch) in batch.files.iter().enumerate() {
        site.file = Some((index, patch));
        site.check_text("fileKey", patch.key.as_deref());
        keys.check("fileKey", index, patch.key.as_deref(), &mut site);
        site.check_text("fileLabel", patch.label.as_deref());
        let target = targets::check(&patch.target, &mut site);
        let other = targets::check_other(patch, &mut site);
        let edit = check_edit(&patch.edit, &mut site);
        if let (Some(target), Ok(other), Some((base, edit))) = (target, other, edit) {
            files.push(ValidFile { is_blind: false, patch, target, other, base, edit });
        }
    }
    targets::check_twins(batch, &mut site);
    site.file = None;
    let mut quotes = Vec::with_capacity(batch.quotes.len());
    for quote in &batch.quotes {
        match quote::check(quote) {
            Ok(quote) => quotes.push(quote),
            Err(failure) => site.refuse(&format!("line {}", quote.first_line), || failure),
        }
    }
    findings.or(ValidBatch { batch, files, quotes })
}

/// Sizes that are not even looked into when they are passed.
fn too_many(batch: &Batch, limits: &Limits) -> Option<(&'static str, Violation)> {
    if batch.files.is_empty() {
        return Some(("files", Violation::Empty { what: "file patch" }));
    }
    let found = batch.files.len().saturating_add(batch.quotes.len());
    if found > limits.files {
        return Some(("files", Violation::Files { found, limit: limits.files }));
    }
    // A part without hunks is work too.
    let changes = batch.files.iter().map(|patch| match &patch.edit {
        FileEdit::GitSeries(parts) => parts.iter().map(|part| part.hunks.len().max(1)).sum(),
        edit => edit.change_count(),
    });
    let found = changes.fold(0, usize::saturating_add);
    (found > limits.changes).then_some(("files", Violation::Changes { found, limit: limits.changes }))
}

fn check_edit<'a>(edit: &'a FileEdit, site: &mut Site<'_, 'a>) -> Option<(Base, ValidEdit<'a>)> {
    match edit {
        FileEdit::LinePatch(patch) => {
            let digest = patch.original_sha256.parse::<Sha256Digest>();
            let digest = digest.map_err(|error| site.report("originalSha256", || Violation::Digest(error))).ok();
            let lines = line_patch::check::check(&patch.changes, site);
            Some((Base::MustMatch(digest?), ValidEdit::Lines(lines?)))
        }
        FileEdit::CreateFile(create) => {
            check_content(&create.content, site);
            check_format(create.content_format.as_deref(), site);
            let base = if create.overwrite { Base::Any } else { Base::MustNotExist };
            Some((base, ValidEdit::Content(&create.content)))
        }
        FileEdit::WriteFile(write) => {
            check_content(&write.content, site);
            check_format(write.content_format.as_deref(), site);
            let base = match write.presence {
                Presence::Absent => Base::MustNotExist,
                Presence::Present => Base::MustExist,
                Presence::Either => Base::Any,
            };
            Some((base, ValidEdit::Verbatim(&write.content)))
        }
        FileEdit::AnchorEdit(edit) => anchor_edit::check(edit, site),
        FileEdit::DeleteFile => Some((Base::MustExist, ValidEdit::Delete)),
        FileEdit::SearchPatch(patch) => {
            let (base, changes) = search_patch::check::check(&patch.changes, site)?;
            Some((base, ValidEdit::Search(changes)))
        }
        FileEdit::Replacements(replacements) => {
            let (base, steps) = replacements::check::check(&replacements.steps, site)?;
            Some((base, ValidEdit::Steps(steps)))
        }
        FileEdit::ContextPatch(patch) => {
            Some((Base::MustExist, ValidEdit::Context(context_patch::check::check(patch, site)?)))
        }
        FileEdit::GitPatch(patch) => git_patch::check::check(patch, site),
        FileEdit::GitSeries(parts) => git_patch::check_series::check(parts, site),
    }
}

/// The keys seen so far, each of which stands for one entry (TUL-002 4.2.1, 5.1.1).
#[derive(Default)]
pub(crate) struct Keys<'a>(BTreeMap<&'a str, usize>);

impl<'a> Keys<'a> {
    /// Reports a key that an earlier entry has. An empty one is none.
    pub(crate) fn check(&mut self, field: &str, index: usize, key: Option<&'a str>, site: &mut Site<'_, 'a>) {
        let Some(key) = key.filter(|key| !key.is_empty()) else { return };
        if let Some(other) = self.0.get(key).copied() {
            site.report(field, || Violation::DuplicateKey { key: shown::path(key).into_owned(), other });
        } else {
            self.0.insert(key, index);
        }
    }
}

fn check_content(content: &Content, site: &mut Site<'_, '_>) {
    let (found, has_nul) = match content {
        Content::Text(text) => (text.len() as u64, memchr::memchr(0, text.as_bytes()).is_some()),
        Content::Blob(blob) => (blob.size_bytes, false),
    };
    let limit = site.limits.created_bytes;
    if found > limit {
        site.report("content", || Violation::Content { found, limit });
    } else if has_nul {
        site.report("content", || Violation::Nul);
    }
}

fn check_format(format: Option<&str>, site: &mut Site<'_, '_>) {
    if let Some(found) = format.filter(|format| *format != VERBATIM) {
        let found = shown::cut(found.as_bytes(), 40).into_owned();
        site.report("contentFormat", || Violation::ContentFormat { found });
    }
}

/// The place in a batch that is being looked at, and where what is wrong with it goes.
pub(crate) struct Site<'f, 'a> {
    pub(crate) findings: &'f mut Findings,
    pub(crate) limits: &'f Limits,
    pub(crate) regexes: Regexes<'a>,
    pub(crate) file: Option<(usize, &'a FilePatch)>,
    pub(crate) change: Option<usize>,
    /// How many changes of the file are listed in parts above the one that is looked at.
    above: usize,
}

impl Site<'_, '_> {
    /// Looks at a part of a file whose changes come after so many others.
    pub(crate) fn below<T>(&mut self, above: usize, look: impl FnOnce(&mut Self) -> T) -> T {
        self.above = above;
        let seen = look(self);
        self.above = 0;
        seen
    }

    pub(crate) fn check_text(&mut self, field: &str, text: Option<&str>) {
        let (found, limit) = (text.unwrap_or_default().len(), self.limits.text_bytes);
        if found > limit {
            self.report(field, || Violation::Text { found, limit });
        }
    }

    /// Takes down a violation of the field of this name, which is only made if it is listed.
    pub(crate) fn report(&mut self, field: &str, violation: impl FnOnce() -> Violation) {
        self.refuse(field, || violation().failure());
    }

    /// Takes down a failure of the field of this name, which is only made if it is listed.
    pub(crate) fn refuse(&mut self, field: &str, failure: impl FnOnce() -> Failure) {
        let (file, change) = (self.file, self.change.map(|change| change + self.above));
        self.findings.add(|| {
            let failure = failure();
            match (file, change) {
                (None, _) => failure.field(field),
                (Some((index, patch)), None) => {
                    failure.field(format!("files[{index}].{field}")).file(index, &shown::path(patch.target.as_str()))
                }
                (Some((index, patch)), Some(change)) => failure
                    .field(format!("files[{index}].changes[{change}].{field}"))
                    .file(index, &shown::path(patch.target.as_str()))
                    .change(change),
            }
        });
    }
}
