//! Edits sent twice. Each change of a real history is sent by itself, and once more to what came of it: the second time
//! it must change nothing, and the first time it must not be taken for the second.

mod form;
mod report;

use std::sync::Mutex;

use anyhow::{Result, ensure};
use aptix_model::documents::Dialect;
use aptix_model::failure::Failure;
use aptix_model::reason::Reason;

use crate::history::{FileChange, Step};
use crate::memory::{Applied, File, apply};
use crate::random::Random;
use crate::workers;
use form::{Form, Single, singles};
use report::{Outcome, Report};

/// Sends at most so many changes, or all of them, in each form of each dialect.
pub(crate) fn run(steps: &[Step], dialects: &[Dialect], most: Option<usize>, seed: u64) -> Result<()> {
    control()?;
    let files: Vec<(&str, &FileChange)> =
        steps.iter().flat_map(|step| step.files.iter().map(|file| (step.name.as_str(), file))).collect();
    let total: usize = files.iter().map(|(_, file)| singles(file).len()).sum();
    let report = Mutex::new(Report::default());
    workers::each(&files, |number, (step, file)| {
        let mut random = Random::new(seed.wrapping_add(number as u64));
        let mut taken = singles(file).into_iter().filter(|_| most.is_none_or(|most| random.below(total) < most));
        taken.try_for_each(|single| send_all(step, &single, dialects, &report))
    })?;
    workers::with(&report, |report| {
        report.print(total, seed);
        report.verdict()
    })
}

fn send_all(step: &str, single: &Single, dialects: &[Dialect], report: &Mutex<Report>) -> Result<()> {
    for dialect in dialects {
        for form in Form::of(*dialect) {
            let (outcome, document) = match single.say(*dialect, form)? {
                Ok(said) => (send_twice(*dialect, form, single, &said)?, said.document),
                Err(reason) => (Outcome::Unsaid(reason), Vec::new()),
            };
            workers::with(report, |report| report.add(*dialect, form, single, step, &document, outcome));
        }
    }
    Ok(())
}

fn send_twice(dialect: Dialect, form: Form, single: &Single, said: &form::Said) -> Result<Outcome> {
    let path = single.file.path.as_str();
    let Some(before) = &single.file.before else { return Ok(Outcome::Unsaid("a file comes")) };
    let send = |file: &File| match apply(&said.document, dialect, &[(path, file)].into())? {
        Ok(Applied { tree, .. }) if tree.len() == 1 => Ok(Ok(tree.get(path).cloned().unwrap_or_default())),
        Ok(_) => Ok(Ok(File::default())),
        Err(failure) => Ok(Err(failure)),
    };
    match judge(before, &said.after, send)? {
        Outcome::Same if form == Form::Everywhere && before.bytes == said.after => {
            Ok(Outcome::Unsaid("no word for another"))
        }
        outcome => Ok(outcome),
    }
}

/// Sends an edit to a file, and again to what came of it.
fn judge(before: &File, after: &[u8], send: impl Fn(&File) -> Result<Result<File, Box<Failure>>>) -> Result<Outcome> {
    let once = match send(before)? {
        Ok(once) => once,
        // The edit's place is unique, or stated exactly: nothing but its being an addition can make it ambiguous.
        Err(failure) if matches!(failure.reason, Reason::AlreadyApplied | Reason::TextNotUnique) => {
            return Ok(Outcome::TakenForSecond(failure));
        }
        Err(failure) => return Ok(Outcome::Refused(failure)),
    };
    if once.bytes != after {
        return Ok(Outcome::Wrong);
    }
    Ok(match send(&once)? {
        Err(failure) => Outcome::Once(failure),
        Ok(second) if second == once => Outcome::Same,
        Ok(_) => Outcome::Doubled,
    })
}

/// Shows that an edit that takes effect twice is seen, and one that does something else.
fn control() -> Result<()> {
    let file = |text: &str| File { bytes: text.as_bytes().to_vec(), is_executable: false };
    // Nothing keeps this one from being made again.
    let careless = |file: &File| {
        let bytes = String::from_utf8_lossy(&file.bytes).replacen('a', "ab", 1).into_bytes();
        Ok(Ok(File { bytes, is_executable: false }))
    };
    let doubled = judge(&file("a"), b"ab", careless)?;
    ensure!(matches!(doubled, Outcome::Doubled), "an edit that takes effect twice is not seen");
    let wrong = judge(&file("a"), b"b", careless)?;
    ensure!(matches!(wrong, Outcome::Wrong), "an edit that does something else is not seen");
    let refusing = |_: &File| Ok(Err(Box::new(Failure::new(Reason::AlreadyApplied, "it was made before"))));
    let taken = judge(&file("a"), b"ab", refusing)?;
    ensure!(matches!(taken, Outcome::TakenForSecond(_)), "a false refusal is not seen");
    Ok(())
}
