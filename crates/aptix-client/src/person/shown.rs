//! A change as a person is shown it: all of it, what needs attention first and by name, with nothing in it that could steer
//! a terminal, hide, or pose as a message of Aptix.

use std::fmt::{self, Write as _};

use aptix_engine::file_plan::FilePlan;
use aptix_model::batch::{Atomicity, FilePatch};
use aptix_model::digest::Sha256Digest;
use aptix_model::failure::Visible;
use aptix_model::report::{FileReport, FileStatus};

use super::rows::Line;
use crate::apply::Hidden;
use crate::apply::proposal::{Ask, Need, Proposal};
use crate::present::diff::{DiffLine, LineKind, add_notes, diff_lines, kept_line};
use crate::present::untrusted::{Name, Quoted};
use crate::workspace::read::place::Place;
use crate::workspace::roots::root::Root;

/// Bytes of a path that are shown beside other facts.
const SHORT: usize = 120;
/// Bytes of a path that are shown in a question.
const IN_QUESTION: usize = 40;
/// Warnings that a person has to see before agreeing.
const RISKS: [&str; 5] = ["GENERATED_FILE", "HARD_LINK_BROKEN", "SETUID_CLEARED", "OWNER_CHANGED", "ATTRIBUTE_LOST"];

/// A change as a person is shown it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shown {
    /// What it is called.
    pub(crate) head: Vec<Line>,
    /// What becomes of each file that does not stay as it is; those that stand out come first.
    pub(crate) files: Vec<ShownFile>,
    /// The files that stay as they are.
    pub(crate) unchanged: Vec<Line>,
    /// The digest of what is agreed to.
    pub(crate) digest: Line,
    /// What it all comes to.
    pub(crate) totals: String,
    /// Whether refusing one file leaves the others.
    pub(crate) is_per_file: bool,
    /// Whether what is asked is if a batch may be compared with files, and not yet if it may be written.
    pub(crate) is_comparison: bool,
    /// Whether a reason for a no reaches nobody: who edits a file that they are not shown is told the same for each no.
    pub(crate) drops_reason: bool,
}

/// What becomes of one file.
#[derive(Clone, Debug)]
pub(crate) struct ShownFile {
    /// Position of the file patch in the batch, from 0.
    pub(crate) index: usize,
    /// The path as the author wrote it.
    pub(crate) target: String,
    /// What it is called in a question, which has to be short.
    pub(crate) name: String,
    /// The change, and what else there is to know about it.
    pub(crate) lines: Vec<Line>,
    /// The file by its name, and why it needs attention.
    pub(crate) attention: Option<Line>,
    /// What is allowed if it is never to be asked about again; nothing if it cannot be.
    pub(crate) allows: Vec<Line>,
    /// The file before, where its lines that stay as they are can be asked for.
    pub(crate) base: Option<Base>,
}

/// A file before a change, by its lines.
#[derive(Clone)]
pub(crate) struct Base {
    bytes: Vec<u8>,
    /// How many there are.
    lines: usize,
    /// The offset of the first of every [`STRIDE`] lines.
    starts: Vec<usize>,
}

/// Bytes of a file whose lines that stay can be asked for.
const BASE_BYTES: usize = 16 << 20;
/// Lines from one offset that is kept to the next.
const STRIDE: usize = 64;

impl Base {
    /// Of a file that is not too large to be kept while a question waits.
    fn of(bytes: &[u8]) -> Option<Self> {
        let next = memchr::memchr_iter(b'\n', bytes).map(|end| end + 1);
        let lines = || std::iter::once(0).chain(next.clone()).filter(|start| *start < bytes.len());
        let is_small = bytes.len() <= BASE_BYTES;
        is_small.then(|| Self {
            bytes: bytes.to_vec(),
            lines: lines().count(),
            starts: lines().step_by(STRIDE).collect(),
        })
    }

    /// How many lines it has.
    pub(crate) const fn len(&self) -> usize {
        self.lines
    }

    /// A line by its number, from 1, as it is shown in a diff in which it stays.
    pub(crate) fn line(&self, number: usize) -> Option<Line> {
        let index = number.checked_sub(1)?;
        let rest = self.bytes.get(*self.starts.get(index / STRIDE)?..)?;
        let text = rest.strip_suffix(b"\n").unwrap_or(rest);
        let line = text.split(|byte| *byte == b'\n').nth(index % STRIDE).filter(|_| index < self.lines)?;
        Some(Line::diff(kept_line(line)))
    }
}

impl fmt::Debug for Base {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Base").field("lines", &self.lines).finish_non_exhaustive()
    }
}

impl Shown {
    /// The same, with each file before the change.
    pub(crate) fn with_bases(mut self, proposal: &Proposal<'_>) -> Self {
        for file in &mut self.files {
            let base = proposal.plan.files.get(file.index).and_then(FilePlan::base);
            file.base = base.and_then(Base::of);
        }
        self
    }
}

/// The withheld files that a batch would be compared with. Nothing that its author wrote is shown except the paths.
pub(crate) fn compared(name: &str, hidden: &[Hidden<'_>]) -> Shown {
    let head = [
        Line::ours(""),
        Line::head(format!("{name} edits withheld files")),
        Line::ours("Its author is not shown these files, nor told whether the batch fits them."),
        Line::ours("If it fits, you see the whole change before anything is written."),
    ];
    let files = hidden.iter().map(|file| Line::ours(format!("attention: {}: {}", Name(file.path), file.why.because())));
    Shown {
        head: head.into_iter().chain(files).collect(),
        totals: format!("{} {}", hidden.len(), if hidden.len() == 1 { "file" } else { "files" }),
        is_comparison: true,
        drops_reason: true,
        ..Shown::default()
    }
}

/// Everything there is to see of a proposal; `subject` is its digest.
pub(crate) fn shown(name: &str, proposal: &Proposal<'_>, subject: Sha256Digest) -> Shown {
    let (mut files, mut unchanged) = (Vec::new(), Vec::new());
    let (mut stay, mut added, mut removed) = (0, 0, 0);
    for index in 0..proposal.plan.files.len() {
        let Some(seen) = Seen::of(proposal, index) else { continue };
        if seen.file.status == FileStatus::Unchanged {
            stay += 1;
            unchanged.extend(seen.notes());
            continue;
        }
        let diff = diff_lines(&seen.file.diff(usize::MAX).unwrap_or_default());
        let count = |wanted| diff.iter().filter(|line| line.kind == wanted).count();
        let counts = (count(LineKind::Added), count(LineKind::Removed));
        (added, removed) = (added + counts.0, removed + counts.1);
        files.push((seen, diff, counts));
    }
    files.sort_by_key(|(seen, ..)| seen.rank());
    let all = files.len();
    let files: Vec<_> =
        (1..).zip(files).map(|(number, (seen, diff, counts))| seen.shown((number, all), diff, counts)).collect();
    let attention = files.iter().filter(|file| file.attention.is_some()).count();
    let mut totals = format!("{all} {}, +{added} -{removed}", if all == 1 { "file" } else { "files" });
    if stay > 0 {
        let _ = write!(totals, ", {stay} unchanged");
    }
    if attention > 0 {
        let _ = write!(totals, ", {attention} {} attention", if attention == 1 { "needs" } else { "need" });
    }
    if proposal.left_out > 0 {
        let _ = write!(totals, ", {} of the batch refused before and left out", proposal.left_out);
    }
    let label = proposal.batch.label.as_deref().map(|label| Line::ours(format!("  label {}", Quoted(label))));
    let head = [Line::ours(""), Line::head(format!("{name}:"))].into_iter().chain(label).collect();
    let is_per_file = proposal.batch.atomicity == Atomicity::PerFile;
    let digest = Line::ours(format!("digest sha256:{subject}"));
    let is_compared = |need: &Need| matches!(need, Need::Ask { ask: Ask::Withheld(_), .. });
    let drops_reason = proposal.needs.iter().any(is_compared);
    Shown { head, files, unchanged, digest, totals, is_per_file, is_comparison: false, drops_reason }
}

/// One file of a proposal.
struct Seen<'a> {
    index: usize,
    file: &'a FilePlan<'a>,
    patch: &'a FilePatch,
    need: &'a Need,
    report: Option<&'a FileReport>,
    place: Option<&'a Place>,
    /// Where the file comes from or goes to.
    other: Option<&'a Place>,
    /// The whole name.
    name: String,
    /// The name of its root and its path there, for each name by which it would be allowed.
    names: Vec<String>,
}

impl<'a> Seen<'a> {
    fn of(proposal: &'a Proposal<'_>, index: usize) -> Option<Self> {
        let file = proposal.plan.files.get(index)?;
        let (place, other) = proposal.places.get(index).copied().unzip();
        Some(Self {
            index,
            file,
            patch: proposal.batch.files.get(index)?,
            need: proposal.needs.get(index)?,
            report: proposal.reports.get(index),
            place,
            other: other.flatten(),
            name: file.path.as_str().to_owned(),
            names: names_of(proposal, index),
        })
    }

    /// Files that a person has to agree to come first, then others that need attention.
    fn rank(&self) -> u8 {
        match self.need {
            Need::Ask { .. } => 0,
            Need::Nothing | Need::Usual if !self.risks().is_empty() => 1,
            Need::Nothing | Need::Usual => 2,
        }
    }

    /// Why the file needs attention.
    fn risks(&self) -> Vec<String> {
        let mut risks = Vec::new();
        if let Need::Ask { ask, other } = self.need {
            let other = other.as_deref().map(|path| format!("{}: ", short(path)));
            risks.push(format!("{}{}", other.unwrap_or_default(), Visible(&ask.to_string())));
        }
        let is_asked = matches!(self.need, Need::Ask { ask: Ask::Deletion, .. });
        if self.file.status == FileStatus::Deleted && !is_asked {
            risks.push("the file is deleted".to_owned());
        }
        if self.file.executable == Some(true) {
            risks.push("the file can be executed afterwards".to_owned());
        }
        let leads = [self.place, self.other].into_iter().flatten().filter_map(real);
        risks.extend(leads.map(|real| format!("a link leads to {}", short(&real))));
        let warnings = self.report.into_iter().flat_map(|report| &report.warnings);
        let warnings = warnings.filter(|warning| RISKS.contains(&warning.code.as_str()));
        risks.extend(warnings.map(|warning| Visible(&warning.message).to_string()));
        risks
    }

    /// What becomes of it, in words.
    fn becomes(&self) -> String {
        let mut text = format!("{} {}", self.file.status.word(), Name(&self.name));
        add_real(&mut text, self.place);
        if let Some(to) = self.file.moved_to {
            let _ = write!(text, " to {}", Name(to.as_str()));
            add_real(&mut text, self.other);
        }
        if let Some(executable) = self.file.executable {
            let _ = write!(text, " ({})", if executable { "can be executed" } else { "cannot be executed" });
        }
        text
    }

    /// What there is to know besides the diff; the first line names the file.
    fn notes(&self) -> Vec<Line> {
        let mut lines = vec![Line::head(self.becomes())];
        lines.extend(self.patch.label.as_deref().map(|label| Line::ours(format!("  label {}", Quoted(label)))));
        let mut notes = String::new();
        self.report.iter().for_each(|report| add_notes(&mut notes, report));
        lines.extend(notes.lines().map(Line::ours));
        lines
    }

    /// The file as it is shown, the number of `all`.
    fn shown(&self, (number, all): (usize, usize), diff: Vec<DiffLine>, (added, removed): (usize, usize)) -> ShownFile {
        let mut notes = self.notes();
        if let Some(head) = notes.first_mut() {
            *head = Line::head(format!("file {number} of {all}, +{added} -{removed}: {}", self.becomes()));
        }
        let risks = self.risks().join("; ");
        let attention = (!risks.is_empty()).then(|| Line::head(format!("attention: {}: {risks}", short(&self.name))));
        let name = Name(&self.name).to_string();
        ShownFile {
            index: self.index,
            target: self.patch.target.as_str().to_owned(),
            name: if name.len() > IN_QUESTION { format!("file {number}") } else { name },
            lines: notes.into_iter().chain(diff.into_iter().map(Line::diff)).collect(),
            attention,
            allows: if matches!(self.need, Need::Ask { ask: Ask::Listed(_) | Ask::Withheld(_), .. }) {
                Vec::new()
            } else {
                self.names.iter().map(|name| Line::ours(format!("  {}", Name(name)))).collect()
            },
            base: None,
        }
    }
}

/// The names by which a file would be allowed: the one of its root, and the path in it.
fn names_of(proposal: &Proposal<'_>, index: usize) -> Vec<String> {
    let root = |root| proposal.workspace.roots().get(root).map_or("", Root::name);
    proposal.names(index).into_iter().map(|(number, path)| format!("{}/{path}", root(number))).collect()
}

/// A path; the beginning of one that is long.
fn short(path: &str) -> String {
    if path.len() > SHORT { Quoted(path).to_string() } else { Name(path).to_string() }
}

/// Which file is really meant, where a link leads to another than the one that is named.
fn real(place: &Place) -> Option<String> {
    Some(place.real()).filter(|real| real != place.path.as_str())
}

fn add_real(text: &mut String, place: Option<&Place>) {
    if let Some(real) = place.and_then(real) {
        let _ = write!(text, " (a link leads to {})", Name(&real));
    }
}
