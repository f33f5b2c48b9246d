//! Applies whole answers of models and compares the files with what a reader of the whole answer expects.
//!
//! `cargo xtask answers` starts it; README.md states the format of the cases in `cases/`.

#![expect(clippy::print_stdout, reason = "a harness prints what it found")]
#![expect(clippy::disallowed_methods, reason = "a harness lays out the projects it works in")]

mod boundary;
mod case;
mod judge;
mod tree;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use clap::Parser;

use crate::boundary::Place;
use crate::case::{Case, Expected};
use crate::judge::{Class, Verdict, judge};

#[derive(Parser)]
struct Args {
    /// Only cases whose title or file contains all these words
    words: Vec<String>,
    /// Print every case with its answer and what was said, not only those that fail
    #[arg(long)]
    show: bool,
    /// The built `aptix`
    #[arg(long, value_name = "FILE")]
    aptix: PathBuf,
    /// Cargo says so to every bench
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            println!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<bool> {
    let begin = Instant::now();
    let mut cases = case::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("harness/answers/cases"))?;
    cases.retain(|case| {
        args.words.iter().all(|word| case.title.contains(word.as_str()) || case.place.contains(word.as_str()))
    });
    ensure!(!cases.is_empty(), "no case contains these words");
    let verdicts = in_parallel(&cases, |case| judge_case(case, &args.aptix))?;
    for (case, verdict) in cases.iter().zip(&verdicts) {
        if args.show || !verdict.class.is_fine() {
            println!("{}: {}\n  {}", case.place, verdict.class, case.title);
            if args.show {
                println!("{}", indented(&case.answer, "  > "));
            }
            println!("{}", indented(&verdict.why, "    "));
        }
    }
    print_counts(&cases, &verdicts);
    println!("{} cases in {:.1} s", cases.len(), begin.elapsed().as_secs_f64());
    Ok(verdicts.iter().all(|verdict| verdict.class.is_fine()))
}

/// Judges a case by the built program, and by the library, which must come to the same.
fn judge_case(case: &Case, program: &Path) -> Result<Verdict> {
    let place = Place::new(&case.before)?;
    let said = place.run_program(program, &case.answer)?;
    let mut verdict = judge(case, &said, false);
    if case.is_sent_twice && verdict.class == Class::Applied {
        let again = place.run_program(program, &case.answer)?;
        if let Some(difference) = again.after.difference(&said.after, &said.after) {
            verdict = Verdict::new(Class::Wrong, format!("the second sending changed files:\n{difference}"));
        }
    }
    place.restore()?;
    let library = place.open()?.apply(case.answer.as_bytes(), None)?;
    if (library.success, &library.after) != (said.success, &said.after) {
        return Ok(Verdict::new(Class::Wrong, "the command and the library come to different trees"));
    }
    let by_library = judge(case, &library, true);
    Ok(if by_library.class > verdict.class { by_library } else { verdict })
}

/// Works on all cases with every processor; the results are in the order of the cases.
fn in_parallel<R: Send>(cases: &[Case], work: impl Fn(&Case) -> Result<R> + Sync) -> Result<Vec<R>> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(BTreeMap::new());
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(cases.len());
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some((index, case)) = take(&next, cases) {
                    let result = work(case).with_context(|| format!("{}: {}", case.place, case.title));
                    done.lock().unwrap_or_else(PoisonError::into_inner).insert(index, result);
                }
            });
        }
    });
    let done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    ensure!(done.len() == cases.len(), "a worker ended early");
    done.into_values().collect()
}

fn take<'a>(next: &AtomicUsize, cases: &'a [Case]) -> Option<(usize, &'a Case)> {
    let index = next.fetch_add(1, Ordering::Relaxed);
    cases.get(index).map(|case| (index, case))
}

fn print_counts(cases: &[Case], verdicts: &[Verdict]) {
    for class in Class::ALL {
        println!("{:>5} {class}", verdicts.iter().filter(|verdict| verdict.class == class).count());
    }
    let clear = cases.iter().zip(verdicts).filter(|(case, _)| is_unambiguous(case));
    let (mut applied, mut expected, mut all) = (0, 0, 0);
    for (case, verdict) in clear {
        all += 1;
        expected += usize::from(matches!(case.expected, Expected::Applied(_)));
        applied += usize::from(matches!(verdict.class, Class::Applied | Class::Mute));
    }
    println!(
        "{all:>5} unambiguous answers: {applied} applied ({} %), {expected} expected to be applied ({} %)",
        percent(applied, all),
        percent(expected, all)
    );
}

const fn is_unambiguous(case: &Case) -> bool {
    case.is_clear || matches!(case.expected, Expected::Applied(_))
}

fn percent(part: usize, whole: usize) -> usize {
    (part * 100).checked_div(whole).unwrap_or_default()
}

fn indented(text: &str, by: &str) -> String {
    text.lines().map(|line| format!("{by}{line}")).collect::<Vec<_>>().join("\n")
}
