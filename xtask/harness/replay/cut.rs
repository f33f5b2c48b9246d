//! Documents of real histories, cut off somewhere. What is left must be refused, or do what the whole does; where it is
//! a whole document itself, because the cut lies between two parts, it does what those parts do.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::{Result, ensure};
use aptix_model::documents::Dialect;

use crate::express;
use crate::express::reach::Reach;
use crate::history::{FileChange, Step};
use crate::memory::{File, Tree, apply};
use crate::parts::{self, Part};
use crate::random::Random;
use crate::variant::Variant;

/// Files of one document.
const FILES: usize = 3;
/// Bytes of a document that is cut; larger ones take long, and are the same over and over.
const BYTES: usize = 100_000;
/// Examples that are shown of each class.
const SHOWN: usize = 3;

/// What came of documents that were cut.
#[derive(Default)]
struct Count {
    refused: usize,
    same: usize,
    /// Applied: the parts above the cut, which lies between parts.
    between: BTreeMap<Part, usize>,
    in_part: usize,
}

#[derive(Default)]
struct Report {
    documents: usize,
    /// Documents that are refused as a whole, and are not cut.
    refused: usize,
    rows: BTreeMap<&'static str, Count>,
    shown: BTreeMap<&'static str, Vec<String>>,
}

/// Cuts documents until there were so many cuts of each dialect, or each document at so many places.
pub(crate) fn run(steps: &[Step], dialects: &[Dialect], most: Option<usize>, seed: u64) -> Result<()> {
    control()?;
    let groups: Vec<(&Step, Vec<&FileChange>)> = steps
        .iter()
        .flat_map(|step| {
            let files: Vec<&FileChange> = step.files.iter().collect();
            let groups: Vec<_> = files.chunks(FILES).map(<[&FileChange]>::to_vec).collect();
            groups.into_iter().map(move |group| (step, group))
        })
        .collect();
    let whole: Vec<&Step> = steps.iter().filter(|step| step.patch.is_some()).collect();
    let (next, workers) = (AtomicUsize::new(0), thread::available_parallelism()?.get());
    let total = groups.len() + whole.len();
    let cuts = most.map_or(40, |most| (most / total.max(1)).clamp(2, 40));
    let taken = most.map_or(total, |most| most / cuts);
    let work = || {
        let mut report = Report::default();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= total {
                return Ok(report);
            }
            let mut random = Random::new(seed.wrapping_add(number as u64));
            if random.below(total) >= taken {
                continue;
            }
            match groups.get(number) {
                Some((step, group)) => {
                    for dialect in dialects {
                        cut_group(*dialect, step, group, cuts, &mut random, &mut report)?;
                    }
                }
                None if dialects.contains(&Dialect::GitPatch) => {
                    let step = whole[number - groups.len()];
                    let files: Vec<&FileChange> = step.files.iter().collect();
                    let patch = step.patch.as_deref().unwrap_or_default();
                    if patch.len() <= BYTES {
                        cut(
                            "git's own",
                            Dialect::GitPatch,
                            (&step.name, patch),
                            &files,
                            cuts,
                            &mut random,
                            &mut report,
                        )?;
                    }
                }
                None => {}
            }
        }
    };
    let reports: Result<Vec<Report>> = thread::scope(|scope| {
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        let done =
            workers.into_iter().map(|worker| worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        done.collect()
    });
    let report = reports?.into_iter().reduce(Report::merge).unwrap_or_default();
    report.print(seed);
    report.verdict()
}

fn cut_group(
    dialect: Dialect,
    step: &Step,
    group: &[&FileChange],
    cuts: usize,
    random: &mut Random,
    report: &mut Report,
) -> Result<()> {
    let variant = Variant::ALL[random.below(Variant::ALL.len())];
    let files: Vec<FileChange> = group.iter().filter_map(|file| variant.of(file)).collect();
    let said = files.iter().filter_map(|file| Some((file, express::part(dialect, file, Reach::Unique).ok()?)));
    let (said, parts): (Vec<&FileChange>, Vec<_>) = said.unzip();
    if said.is_empty() {
        return Ok(());
    }
    let documents = match dialect {
        // An answer with a block for each file.
        Dialect::Chat if random.below(2) == 0 => {
            let blocks = parts.into_iter().map(|part| express::documents(dialect, vec![part]));
            vec![blocks.collect::<Result<Vec<_>>>()?.concat().concat()]
        }
        _ => express::documents(dialect, parts)?,
    };
    let alone = documents.len() > 1;
    for (position, document) in documents.iter().enumerate() {
        let files = if alone { &said[position..=position] } else { &said[..] };
        if document.len() <= BYTES {
            cut(dialect.name(), dialect, (&step.name, document), files, cuts, random, report)?;
        }
    }
    Ok(())
}

fn cut(
    name: &'static str,
    dialect: Dialect,
    (step, document): (&str, &[u8]),
    files: &[&FileChange],
    cuts: usize,
    random: &mut Random,
    report: &mut Report,
) -> Result<()> {
    let before: BTreeMap<&str, &File> =
        files.iter().filter_map(|file| Some((file.path.as_str(), file.before.as_ref()?))).collect();
    let send = |length: usize| Ok(apply(&document[..length], dialect, &before)?.ok().map(|applied| applied.tree));
    report.documents += 1;
    let Some(whole) = send(document.len())? else {
        report.refused += 1;
        return Ok(());
    };
    let ends = parts::ends(dialect, document);
    let lines: Vec<usize> = memchr::memchr_iter(b'\n', document).map(|feed| feed + 1).collect();
    for _ in 0..cuts {
        // Most answers end where a token ends; half of the cuts are at or beside the end of a line.
        let at = match random.below(2) {
            0 => random.below(document.len()),
            _ => lines.get(random.below(lines.len().max(1))).map_or(0, |line| line.saturating_sub(random.below(3))),
        };
        let near = parts::end_at(&ends, document, at);
        let outcome = judge(at, &whole, near, send)?;
        let row = report.rows.entry(name).or_default();
        match outcome {
            Outcome::Refused => row.refused += 1,
            Outcome::Same => row.same += 1,
            Outcome::Between(part) => *row.between.entry(part).or_default() += 1,
            Outcome::InPart => {
                row.in_part += 1;
                let shown = report.shown.entry(name).or_default();
                if shown.len() < SHOWN {
                    let text = String::from_utf8_lossy(&document[at.saturating_sub(400)..at]);
                    shown.push(format!("{step}, cut at byte {at} of {}: ...{text:?}", document.len()));
                }
            }
        }
    }
    Ok(())
}

/// What came of one cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
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
    fn merge(mut self, other: Self) -> Self {
        self.documents += other.documents;
        self.refused += other.refused;
        for (name, count) in other.rows {
            let sum = self.rows.entry(name).or_default();
            sum.refused += count.refused;
            sum.same += count.same;
            sum.in_part += count.in_part;
            for (part, count) in count.between {
                *sum.between.entry(part).or_default() += count;
            }
        }
        for (name, examples) in other.shown {
            let shown = self.shown.entry(name).or_default();
            shown.extend(examples);
            shown.truncate(SHOWN);
        }
        self
    }

    fn print(&self, seed: u64) {
        println!("cut anywhere: {} documents, {} refused as a whole; seed {seed}", self.documents, self.refused);
        println!("{:<17} {:>7} {:>8} {:>6} {:>8}  between parts", "dialect", "cuts", "refused", "same", "in part");
        for (name, count) in &self.rows {
            let between: usize = count.between.values().sum();
            let parts: Vec<String> =
                count.between.iter().map(|(part, count)| format!("{count} {}", part.name())).collect();
            println!(
                "{:<17} {:>7} {:>8} {:>6} {:>8}  {}",
                name,
                count.refused + count.same + count.in_part + between,
                count.refused,
                count.same,
                count.in_part,
                parts.join(", ")
            );
        }
        for (name, shown) in &self.shown {
            shown.iter().for_each(|line| println!("in part: {name}: {line}"));
        }
    }

    /// # Errors
    /// When a document that was cut was applied in part.
    fn verdict(&self) -> Result<()> {
        let in_part: usize = self.rows.values().map(|row| row.in_part).sum();
        println!("cut anywhere: {in_part} applied in part");
        ensure!(in_part == 0, "{in_part} documents that were cut were applied in part");
        Ok(())
    }
}
