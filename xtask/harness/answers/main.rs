//! Applies whole answers of models, and answers made from them, and compares the files with what a reader of the whole
//! answer expects.
//!
//! `cargo xtask answers` starts it; README.md states the format of the cases in `cases/` and the rules for variants.

#![expect(clippy::print_stdout, reason = "a harness prints what it found")]
#![expect(clippy::disallowed_methods, reason = "a harness lays out the projects it works in")]

mod boundary;
mod case;
mod control;
mod judge;
#[path = "../program.rs"]
mod program;
#[path = "../random.rs"]
mod random;
mod report;
mod rules;
mod scan;
mod tree;
mod variants;
#[path = "../workers.rs"]
#[expect(dead_code, reason = "other harnesses count while they work")]
mod workers;

use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use aptix_model::documents::Dialect;
use clap::Parser;

use crate::boundary::Place;
use crate::case::Case;
use crate::judge::{Class, Verdict, Way};
use crate::random::Random;
use crate::report::Judged;
use crate::variants::{Kind, Variant};

/// Cuts inside a line that are tried of each case, unless all are.
const BYTE_CUTS: usize = 8;

#[derive(Parser)]
struct Args {
    /// Only cases whose title or file contains all these words
    words: Vec<String>,
    /// Print every case with its answer and its result, not only those that fail
    #[arg(long)]
    show: bool,
    /// No variants, only the cases
    #[arg(long)]
    cases: bool,
    /// Cut inside every line at each byte, not at some of them
    #[arg(long)]
    long: bool,
    /// Fail only for what was applied wrongly or refused unhelpfully, and for too few that were applied
    #[arg(long)]
    gate: bool,
    /// What decides where answers are cut inside a line
    #[arg(long)]
    seed: Option<u64>,
    /// Cargo passes this to every bench
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
    let seed = args.seed.unwrap_or_else(random::seed);
    let cuts = if args.long { usize::MAX } else { BYTE_CUTS };
    let judged = workers::each(&cases, |index, case| {
        let mut random = Random::new(seed.wrapping_add(index as u64));
        judge_all(case, args, cuts, &mut random).with_context(|| format!("{}: {}", case.place, case.title))
    })?;
    report::print_failing(&cases, &judged, args.show);
    report::print_counts(&cases, &judged);
    let control = control::check(&cases, args.words.is_empty())?;
    println!("control: {control}");
    println!("{} cases in {:.1} s, --seed {seed}", cases.len(), begin.elapsed().as_secs_f64());
    Ok(if args.gate { report::keeps_promise(&cases, &judged) } else { report::is_fine(&judged) })
}

fn judge_all(case: &Case, args: &Args, cuts: usize, random: &mut Random) -> Result<Judged> {
    let verdict = judge_case(case)?;
    let (variants, unjudged) = if args.cases { (Vec::new(), 0) } else { judge_variants(case, cuts, random)? };
    Ok(Judged { verdict, variants, unjudged })
}

/// Judges a case by the built program, and by the library, which must have the same outcome.
fn judge_case(case: &Case) -> Result<Verdict> {
    let place = Place::new(&case.before)?;
    let said = place.run_program(&case.answer)?;
    let mut verdict = judge::judge(case, &said, Way::Command);
    if verdict.class == Class::Applied && !case.is_repeatable {
        let again = place.run_program(&case.answer)?;
        if let Some(difference) = again.after.difference(&said.after, &said.after) {
            verdict = Verdict::new(Class::Wrong, format!("the second sending changed files:\n{difference}"));
        }
    }
    place.restore()?;
    let library = place.open()?.apply(case.answer.as_bytes(), None)?;
    if (library.success, &library.after) != (said.success, &said.after) {
        return Ok(Verdict::new(Class::Wrong, "the command and the library produce different trees"));
    }
    let by_library = judge::judge(case, &library, Way::Library);
    Ok(if by_library.class > verdict.class { by_library } else { verdict })
}

/// Judges all variants of a case, with so many cuts inside lines; counts those of which no rule says what is right.
fn judge_variants(case: &Case, cuts: usize, random: &mut Random) -> Result<(Vec<(Variant, Verdict)>, usize)> {
    let mut variants = variants::of(case);
    let places = random.sample(cuts, case.answer.len());
    variants.extend(places.into_iter().filter_map(|at| variants::cut_at_byte(case, at)));
    let place = Place::new(&case.before)?;
    let mut library = place.open()?;
    let mut judged = Vec::new();
    let mut unjudged = 0;
    for variant in variants {
        let dialect = (variant.kind == Kind::AsChat).then_some(Dialect::Chat);
        let said = library.apply(variant.answer.as_bytes(), dialect)?;
        let is_changed = said.after != case.before;
        match rules::judge(case, &variant, &said) {
            Some(verdict) => judged.push((variant, verdict)),
            None => unjudged += 1,
        }
        if is_changed {
            drop(library);
            place.restore()?;
            library = place.open()?;
        }
    }
    Ok((judged, unjudged))
}
