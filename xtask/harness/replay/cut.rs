//! Documents of real histories, cut off somewhere. What is left must be refused, or do what the whole does; where it is
//! a whole document itself, because the cut lies between two parts, it does what those parts do.

use std::collections::BTreeMap;
use std::sync::Mutex;

use anyhow::{Result, ensure};
use aptix_model::documents::Dialect;

use crate::express;
use crate::express::reach::Reach;
use crate::history::{FileChange, Step};
use crate::memory::{File, Tree, apply};
use crate::parts::{self, Part};
use crate::random::Random;
use crate::variant::Variant;
use crate::workers;

/// Files of one document.
const FILES: usize = 3;
/// Bytes of a document that is cut; larger ones take long, and are the same over and over.
const BYTES: usize = 100_000;
/// Examples that are shown of each class.
const SHOWN: usize = 3;

#[derive(Default)]
struct Report {
    documents: usize,
    /// Documents that are refused as a whole, and are not cut.
    refused: usize,
    rows: BTreeMap<&'static str, BTreeMap<Outcome, usize>>,
    shown: BTreeMap<&'static str, Vec<String>>,
}

/// Cuts documents until there were so many cuts of each dialect, or each document at so many places.
pub(crate) fn run(steps: &[Step], dialects: &[Dialect], most: Option<usize>, seed: u64) -> Result<()> {
    control()?;
    let groups = steps.iter().flat_map(|step| step.files.chunks(FILES).map(move |group| (step, Some(group))));
    let whole = steps.iter().filter(|step| step.patch.is_some()).map(|step| (step, None));
    let cases: Vec<(&Step, Option<&[FileChange]>)> = groups.chain(whole).collect();
    let cuts = most.map_or(40, |most| (most / cases.len().max(1)).clamp(2, 40));
    let taken = most.map_or(cases.len(), |most| most / cuts);
    let report = Mutex::new(Report::default());
    workers::each(&cases, |number, (step, group)| {
        let mut random = Random::new(seed.wrapping_add(number as u64));
        if random.below(cases.len()) >= taken {
            return Ok(());
        }
        let mut cutter = Cutter { step: &step.name, cuts, random, report: &report };
        match (group, &step.patch) {
            (Some(group), _) => dialects.iter().try_for_each(|dialect| cutter.cut_group(*dialect, group)),
            (None, Some(patch)) if dialects.contains(&Dialect::GitPatch) => {
                cutter.cut("git's own", Dialect::GitPatch, patch, &step.files.iter().collect::<Vec<_>>())
            }
            _ => Ok(()),
        }
    })?;
    workers::with(&report, |report| {
        report.print(seed);
        report.verdict()
    })
}

/// Cuts the documents of one step, each at so many places.
struct Cutter<'a> {
    step: &'a str,
    cuts: usize,
    random: Random,
    report: &'a Mutex<Report>,
}

impl Cutter<'_> {
    fn cut_group(&mut self, dialect: Dialect, group: &[FileChange]) -> Result<()> {
        let variant = Variant::ALL[self.random.below(Variant::ALL.len())];
        let files: Vec<FileChange> = group.iter().filter_map(|file| variant.of(file)).collect();
        let said = files.iter().filter_map(|file| Some((file, express::part(dialect, file, Reach::Unique).ok()?)));
        let (said, parts): (Vec<&FileChange>, Vec<_>) = said.unzip();
        if said.is_empty() {
            return Ok(());
        }
        let documents = match dialect {
            // An answer with a block for each file.
            Dialect::Chat if self.random.below(2) == 0 => {
                let blocks = parts.into_iter().map(|part| express::documents(dialect, vec![part]));
                vec![blocks.collect::<Result<Vec<_>>>()?.concat().concat()]
            }
            _ => express::documents(dialect, parts)?,
        };
        let alone = documents.len() > 1;
        for (position, document) in documents.iter().enumerate() {
            let files = if alone { &said[position..=position] } else { &said[..] };
            self.cut(dialect.name(), dialect, document, files)?;
        }
        Ok(())
    }

    fn cut(&mut self, name: &'static str, dialect: Dialect, document: &[u8], files: &[&FileChange]) -> Result<()> {
        if document.len() > BYTES {
            return Ok(());
        }
        let before: BTreeMap<&str, &File> =
            files.iter().filter_map(|file| Some((file.path.as_str(), file.before.as_ref()?))).collect();
        let send = |length: usize| Ok(apply(&document[..length], dialect, &before)?.ok().map(|applied| applied.tree));
        let whole = send(document.len())?;
        workers::with(self.report, |report| {
            report.documents += 1;
            report.refused += usize::from(whole.is_none());
        });
        let Some(whole) = whole else { return Ok(()) };
        let ends = parts::ends(dialect, document);
        let lines: Vec<usize> = memchr::memchr_iter(b'\n', document).map(|feed| feed + 1).collect();
        for _ in 0..self.cuts {
            let random = &mut self.random;
            // Most answers end where a token ends; half of the cuts are at or beside the end of a line.
            let at = match random.below(2) {
                0 => random.below(document.len()),
                _ => lines.get(random.below(lines.len().max(1))).map_or(0, |line| line.saturating_sub(random.below(3))),
            };
            let outcome = judge(at, &whole, parts::end_at(&ends, document, at), send)?;
            workers::with(self.report, |report| {
                *report.rows.entry(name).or_default().entry(outcome).or_default() += 1;
                let shown = report.shown.entry(name).or_default();
                if outcome == Outcome::InPart && shown.len() < SHOWN {
                    let text = String::from_utf8_lossy(&document[at.saturating_sub(400)..at]);
                    shown.push(format!("{}, cut at byte {at} of {}: ...{text:?}", self.step, document.len()));
                }
            });
        }
        Ok(())
    }
}

/// What came of one cut.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Outcome {
    Refused,
    Same,
    /// The parts above the cut were applied, and it lies below one.
    Between(Part),
    InPart,
}

/// Judges what is left of a document that is cut at a byte, where perhaps a part ends; `send` applies its first bytes.
fn judge(
    at: usize,
    whole: &Tree,
    near: Option<&(usize, Part)>,
    send: impl Fn(usize) -> Result<Option<Tree>>,
) -> Result<Outcome> {
    let Some(found) = send(at)? else { return Ok(Outcome::Refused) };
    if found == *whole {
        return Ok(Outcome::Same);
    }
    match near {
        Some((end, part)) if send(*end)?.is_some_and(|parts| parts == found) => Ok(Outcome::Between(*part)),
        _ => Ok(Outcome::InPart),
    }
}

/// Shows that a document that is applied in part is seen.
fn control() -> Result<()> {
    let tree =
        |text: &str| Tree::from([("f".to_owned(), File { bytes: text.as_bytes().to_vec(), is_executable: false })]);
    // A document of three letters, each of which adds itself to the file; a part ends below the second.
    let careless = |length: usize| Ok(Some(tree(&"abc"[..length])));
    let ends = [(2, Part::Block)];
    let found = |at| judge(at, &tree("abc"), ends.iter().find(|(end, _)| *end == at), careless);
    ensure!(found(3)? == Outcome::Same, "all of it is not seen");
    ensure!(found(2)? == Outcome::Between(Part::Block), "a whole part is not seen");
    ensure!(found(0)? == Outcome::InPart, "a document that succeeds and does nothing is not seen");
    ensure!(found(1)? == Outcome::InPart, "a document that is applied in part is not seen");
    let strict = judge(1, &tree("abc"), None, |_| Ok(None))?;
    ensure!(strict == Outcome::Refused, "a refusal is not seen");
    Ok(())
}

impl Report {
    fn print(&self, seed: u64) {
        println!("cut anywhere: {} documents, {} refused as a whole; seed {seed}", self.documents, self.refused);
        println!("{:<17} {:>7} {:>8} {:>6} {:>8}  between parts", "dialect", "cuts", "refused", "same", "in part");
        for (name, row) in &self.rows {
            let count = |outcome| row.get(&outcome).copied().unwrap_or_default();
            let parts = row.iter().filter_map(|(outcome, count)| match outcome {
                Outcome::Between(part) => Some(format!("{count} {}", part.name())),
                _ => None,
            });
            println!(
                "{:<17} {:>7} {:>8} {:>6} {:>8}  {}",
                name,
                row.values().sum::<usize>(),
                count(Outcome::Refused),
                count(Outcome::Same),
                count(Outcome::InPart),
                parts.collect::<Vec<_>>().join(", ")
            );
        }
        for (name, shown) in &self.shown {
            shown.iter().for_each(|line| println!("in part: {name}: {line}"));
        }
    }

    /// # Errors
    /// When a document that was cut was applied in part.
    fn verdict(&self) -> Result<()> {
        let in_part: usize = self.rows.values().filter_map(|row| row.get(&Outcome::InPart)).sum();
        println!("cut anywhere: {in_part} applied in part");
        ensure!(in_part == 0, "{in_part} documents that were cut were applied in part");
        Ok(())
    }
}
