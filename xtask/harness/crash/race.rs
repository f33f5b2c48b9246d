//! Another process rewrites, removes, links and makes anew the files and directories of the batches that are applied.
//!
//! Every mark of theirs is afterwards on disk, or in a kept copy that a result or the log names, or was the base of an edit; and
//! nothing outside the root has changed.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use aptix_client::apply::acting::Acting;
use aptix_client::apply::proposal::Decision;
use aptix_client::apply::{ApplyOptions, Mode, Refusal, apply};
use aptix_client::policy::Policy;
use aptix_client::policy::caller::Caller;
use aptix_client::workspace::fs::disk::Disk;
use aptix_client::workspace::roots::workspace::Workspace;
use aptix_engine::digest::sha256;
use aptix_model::batch::{
    Batch, Change, Content, FileEdit, FilePatch, LinePatch, Operation, Origin, Presence, Target, WriteFile,
};
use aptix_model::reason::Reason;
use aptix_model::report::Report;
use rustix::fs::{Mode as Bits, OFlags};
use rustix::io::Errno;

use crate::disk::{Operation as DiskOperation, Verdict, Watched};
use crate::failpoints::open;
use crate::job::{Ending, Job};
use crate::program;
use crate::random::Random;
use crate::rewriter::{FILES, Pace, marks};
use crate::tree::{self, Entry, Tree, lay_out};

/// What a control takes away.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Control {
    Nothing,
    /// Files are replaced by a plain rename instead of an exchange.
    Exchange,
    /// Directories are found by their path instead of being held open.
    Held,
}

/// What came of a race.
#[derive(Default)]
struct Tally {
    applied: usize,
    refused: usize,
    marks: usize,
    /// Files that were written after a batch had replaced them.
    displaced: usize,
}

fn disk(place: &Path, control: Control) -> Box<dyn Disk> {
    let ws = place.join("ws");
    let watch = move |operation: DiskOperation<'_>| match (operation, control) {
        (DiskOperation::Sync(_), _) => Verdict::Skip,
        (DiskOperation::Exchange(dir, one, other), Control::Exchange) => match rename_plainly(dir, one, other) {
            Ok(()) => Verdict::Skip,
            Err(errno) => Verdict::Fail(errno),
        },
        (DiskOperation::Create(dir), Control::Held) => by_path(dir, &ws).map_or(Verdict::Pass, Verdict::In),
        _ => Verdict::Pass,
    };
    Box::new(Watched::new(watch))
}

/// What an exchange would be without the call for it: whatever comes between reading and renaming is lost.
fn rename_plainly(dir: BorrowedFd<'_>, one: &str, other: &str) -> Result<(), Errno> {
    let path = |name| PathBuf::from(format!("/proc/self/fd/{}/{name}", dir.as_raw_fd()));
    let plain = || {
        let old = std::fs::read(path(other))?;
        std::fs::rename(path(one), path(other))?;
        std::fs::write(path(one), old)
    };
    plain().map_err(|error: std::io::Error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
}

/// How long a lookup by path waits at most for the path to be replaced.
const LATE: Duration = Duration::from_millis(5);

/// The directory that has the path by which a held one was found.
fn by_path(dir: BorrowedFd<'_>, ws: &Path) -> Option<OwnedFd> {
    let path = std::fs::read_link(format!("/proc/self/fd/{}", dir.as_raw_fd())).ok()?;
    let below = path.strip_prefix(ws).ok()?;
    let was = if below.starts_with("d") || below.as_os_str().is_empty() { below } else { Path::new("d") };
    // A lookup by path may happen after the path was replaced.
    let due = Instant::now() + LATE;
    while !ws.join("d").is_symlink() && Instant::now() < due {
        std::thread::yield_now();
    }
    rustix::fs::open(ws.join(was), OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Bits::empty()).ok()
}

/// A batch for a few of the files, made for what they hold now.
fn batch(ws: &Path, random: &mut Random, number: usize) -> Batch {
    let count = 1 + random.below(3);
    let files = random.sample(count, FILES.len());
    let patches = files.into_iter().filter_map(|file| {
        let name = FILES.get(file)?;
        let found = std::fs::read(ws.join(name)).ok();
        let write = |presence| {
            FileEdit::WriteFile(WriteFile {
                content: Content::Text(format!("ours {number}\n")),
                presence,
                content_format: None,
            })
        };
        let edit = match (found, random.below(10)) {
            (None, _) => write(Presence::Absent),
            (Some(_), 0) => FileEdit::DeleteFile,
            (Some(_), 1) => write(Presence::Present),
            (Some(base), _) => FileEdit::LinePatch(LinePatch {
                original_sha256: sha256(&base).to_string(),
                changes: vec![Change {
                    key: None,
                    description: None,
                    operation: Operation::Insert { after_line: 0, new_lines: vec![format!("ours {number}")] },
                }],
            }),
        };
        Some(FilePatch { target: Target::Path((*name).to_owned()), key: None, label: None, edit })
    });
    Batch { files: patches.collect(), ..Batch::default() }
}

/// What the results of all batches say.
#[derive(Default)]
struct Said {
    /// The marks in the bases of edits.
    bases: BTreeSet<usize>,
    /// Every message.
    texts: String,
}

impl Said {
    fn note(&mut self, outcome: &Result<Report, Refusal>, bases: BTreeSet<usize>) {
        // A refused batch leaves the last write of the other process, and keeps its base no longer than that.
        self.bases.extend(bases);
        match outcome {
            Ok(report) => {
                let warnings = report.files.iter().flat_map(|file| &file.warnings);
                self.texts.extend(warnings.map(|warning| format!("{}\n", warning.message)));
            }
            Err(refusal) => {
                self.texts.extend(refusal.failures.iter().map(|failure| format!("{}\n", failure.message)));
            }
        }
    }
}

fn race(job: &mut Job, applies: usize, control: Control) -> Result<Tally> {
    let place = program::place()?;
    let (ws, outside) = (place.path().join("ws"), place.path().join("outside"));
    let file = |text: &str| Entry::File { bytes: text.as_bytes().to_vec(), runs: false };
    lay_out(&ws, &FILES.iter().map(|name| ((*name).to_owned(), file("first\n"))).collect::<Tree>())?;
    lay_out(&outside, &Tree::from([("secret.txt".to_owned(), file("secret\n")), ("e".to_owned(), Entry::Dir)]))?;
    let before = tree::read(&outside)?;
    let mut rewriter = Command::new(std::env::current_exe()?)
        .arg("rewriter")
        .args([place.path().as_os_str(), job.random.below(1 << 20).to_string().as_ref()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let pace = rewriter.stdin.take().map(Pace::new).context("the rewriter has an input")?;
    let mut lines = BufReader::new(rewriter.stdout.take().context("the rewriter has an output")?).lines();
    // On a busy machine it may take longer to begin than all the batches do.
    let first = lines.next().context("the rewriter says nothing")??;
    let heard =
        std::thread::spawn(move || std::iter::once(first).chain(lines.map_while(Result::ok)).collect::<Vec<_>>());
    let mut applier = Applier { pace, said: Said::default(), tally: Tally::default() };
    let applied = applier.apply_all(place.path(), job, applies, control);
    // The rewriter ends when its input does.
    let Applier { pace, said, tally } = applier;
    drop(pace);
    let ended = rewriter.wait()?;
    let heard = heard.join().map_err(|_| anyhow::anyhow!("the thread that reads from the rewriter panicked"))?;
    let workspace = applied?;
    drop(workspace);
    ensure!(ended.success(), "the rewriter fails: {ended}");
    let workspace = open(place.path(), disk(place.path(), control)).context("the workspace cannot be opened again")?;
    // What was written to old files after their batches had ended is named by the log.
    let displaced = workspace.displaced_writes()?;
    drop(workspace);
    let after = tree::read(&outside)?;
    ensure!(after == before, "what is outside the root has changed: {before:?} is now {after:?}");
    tree::check_state(&place.path().join("state"))?;
    let found = tree::read(&ws)?;
    check_names(&found, &said)?;
    let mut seen = said.bases;
    for entry in found.values() {
        if let Entry::File { bytes, .. } = entry {
            seen.extend(marks(&String::from_utf8_lossy(bytes)));
        }
    }
    for write in &displaced {
        seen.extend(marks(&String::from_utf8_lossy(&std::fs::read(&write.kept_as)?)));
    }
    let numbers =
        |line: &str| line.split(' ').skip(1).filter_map(|word| word.parse::<usize>().ok()).collect::<Vec<_>>();
    let marked = |how: &str| {
        heard.iter().filter(|line| line.starts_with(how)).flat_map(|line| numbers(line)).collect::<Vec<_>>()
    };
    seen.extend(marked("taken "));
    let written: BTreeSet<usize> = [marked("saved "), marked("appended ")].concat().into_iter().collect();
    let lost: Vec<_> = heard
        .iter()
        .filter(|line| !line.starts_with("taken"))
        .filter(|line| numbers(line).iter().any(|mark| !seen.contains(mark)))
        .collect();
    ensure!(lost.is_empty(), "{} of {} foreign writes are lost: {lost:?}", lost.len(), written.len());
    Ok(Tally { marks: written.len(), displaced: displaced.len(), ..tally })
}

/// Applies batches beside the rewriter.
struct Applier {
    pace: Pace,
    said: Said,
    tally: Tally,
}

impl Applier {
    fn apply_all(&mut self, place: &Path, job: &mut Job, applies: usize, control: Control) -> Result<Workspace> {
        let workspace = open(place, disk(place, control))?;
        let policy = Policy::unstated(Caller::Shell);
        let origin = Origin::default();
        for number in 0..applies {
            let batch = batch(&place.join("ws"), &mut job.random, number);
            let options = ApplyOptions {
                policy: &policy,
                origin: &origin,
                diff_bytes: usize::MAX,
                mode: Mode::Commit,
                prepared: None,
                acting: Acting::UNKNOWN,
            };
            let mut bases = BTreeSet::new();
            let outcome = apply(&workspace, &batch, options, &mut |proposal| {
                let texts = proposal.plan.files.iter().filter_map(|file| file.base());
                bases = texts.flat_map(|text| marks(&String::from_utf8_lossy(text)).collect::<Vec<_>>()).collect();
                Decision::Apply
            });
            self.said.note(&outcome, bases);
            // A control is caught the sooner, the more comes in between.
            if control == Control::Nothing {
                self.pace.follow(outcome.is_ok())?;
            }
            match outcome {
                Ok(_) => self.tally.applied += 1,
                Err(refusal) => {
                    let stuck = refusal.failures.iter().find(|failure| failure.reason == Reason::NeedsOperator);
                    ensure!(stuck.is_none(), "batch {number} needs a person: {stuck:?}");
                    self.tally.refused += 1;
                }
            }
        }
        Ok(workspace)
    }
}

/// Nothing staged is left, and every kept copy is named by a result or by the log, except those in a directory that was
/// moved away meanwhile.
fn check_names(found: &Tree, said: &Said) -> Result<()> {
    for path in found.keys() {
        let name = path.rsplit('/').next().unwrap_or_default();
        ensure!(!name.ends_with(".aptix-tmp"), "{path} is left of a batch");
        let is_named = path.starts_with("away") || said.texts.contains(name);
        ensure!(!name.contains(".kept-") || is_named, "no result names the kept copy {path}");
    }
    Ok(())
}

/// How many batches are applied in one place; what others leave in it makes it slow after a while.
const APPLIES: usize = 400;

pub(crate) fn run(job: &mut Job) -> Result<Ending> {
    let mut all = Tally::default();
    let (wanted, mut races, mut tries) = (if job.long { 40 } else { 3 }, 0, 0);
    while races < wanted {
        let Tally { applied, refused, marks, displaced } = race(job, APPLIES, Control::Nothing)?;
        // How fast the others are beside it depends on what else the machine does.
        races += usize::from(applied >= APPLIES / 2 && refused > 0);
        tries += 1;
        ensure!(
            tries < 4 * wanted,
            "only {races} of {tries} were races, the last with {applied} applied, {refused} refused"
        );
        all.applied += applied;
        all.refused += refused;
        all.marks += marks;
        all.displaced += displaced;
    }
    for control in [Control::Exchange, Control::Held] {
        let caught = (0..100).any(|_| race(job, 100, control).is_err());
        ensure!(caught, "the control was not caught: without {control:?} nothing was lost or leaked");
    }
    let Tally { applied, refused, marks, displaced } = all;
    Ok(Ending::Held(format!(
        "{applied} batches applied and {refused} refused between {marks} foreign writes, {displaced} of them to displaced \
         files; controls: caught with plain renames and with path strings"
    )))
}
