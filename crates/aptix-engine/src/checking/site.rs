//! The place in a batch that is being checked, and where violations found there are collected.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;

use aptix_model::batch::FilePatch;
use aptix_model::failure::Failure;
use aptix_model::limits::Limits;
use memchr::{memchr, memchr3};

use crate::checking::regexes::Regexes;
use crate::checking::violation::Violation;
use crate::findings::Findings;
use crate::shown;

/// The place in a batch that is being checked, and the findings that its violations are added to.
pub(crate) struct Site<'f, 'a> {
    pub(crate) findings: &'f mut Findings,
    pub(crate) limits: &'f Limits,
    pub(crate) regexes: Regexes<'a>,
    pub(crate) file: Option<(usize, &'a FilePatch)>,
    pub(crate) change: Option<usize>,
    /// The index of each file patch in what its author sent; `None` if all of that is checked.
    positions: Option<&'f [usize]>,
    /// How many changes of the file are listed in parts above the one that is looked at.
    above: usize,
}

impl<'f> Site<'f, '_> {
    /// At no file yet.
    pub(crate) fn new(findings: &'f mut Findings, limits: &'f Limits, positions: Option<&'f [usize]>) -> Self {
        Self { findings, limits, regexes: Regexes::default(), file: None, change: None, positions, above: 0 }
    }

    /// The index of a file patch in what its author sent.
    pub(crate) fn position(&self, index: usize) -> usize {
        self.positions.and_then(|positions| positions.get(index).copied()).unwrap_or(index)
    }

    /// Enters a part of a file whose changes follow so many others.
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

    /// Reports a text that must not hold NUL, and does.
    pub(crate) fn check_nul(&mut self, field: &str, text: Option<&str>) {
        if memchr(0, text.unwrap_or_default().as_bytes()).is_some() {
            self.report(field, || Violation::Nul);
        }
    }

    /// Reports a line that cannot be one: a new line has nothing in it that would make it several, or binary; one that a
    /// file has may be anything else.
    pub(crate) fn check_line(&mut self, field: impl FnOnce() -> String, is_new: bool, line: &str) {
        let bytes = line.as_bytes();
        let offset = if is_new { memchr3(b'\n', b'\r', 0, bytes) } else { memchr(b'\n', bytes) };
        let (found, limit) = (line.len(), self.limits.line_bytes);
        let violation = match offset.and_then(|offset| Some((offset, bytes.get(offset)?))) {
            Some((offset, b'\n')) => Violation::EmbeddedNewline { offset },
            Some((offset, b'\r')) => Violation::EmbeddedCr { offset },
            Some(_) => Violation::Nul,
            None if found > limit => Violation::LongLine { found, limit },
            None => return,
        };
        self.report(&field(), || violation);
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
