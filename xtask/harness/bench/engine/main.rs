//! How fast the engine plans and applies line patches, beside its floors and a peer in the same run.
//!
//! Thread CPU time, all rows interleaved, corpus totals per pass, median of 7 passes. The argument is
//! a file that lists folders, two for each crate: before and after. Fails when a result is wrong or a goal is missed.

#![expect(clippy::print_stdout, reason = "a bench prints its figures")]
#![expect(clippy::indexing_slicing, reason = "every list has an entry for each edit")]

mod corpus;
#[path = "../../goal.rs"]
mod goal;
mod growth;
mod measure;

use std::hint::black_box;
use std::path::PathBuf;

use anyhow::{Result, bail, ensure};
use aptix_engine::digest::sha256;
use aptix_engine::plan::plan;
use aptix_engine::planning::observed::Observed;
use aptix_engine::planning::settings::Settings;
use aptix_engine::validate::validate;
use aptix_model::limits::Limits;
use aptix_model::path::WorkspacePath;

use crate::corpus::Edit;
use crate::goal::{Goal, median};
use crate::measure::{PASSES, plan_and_apply, time};

fn main() -> Result<()> {
    // Cargo passes `--bench` to every bench.
    let Some(list) = std::env::args_os().skip(1).find(|word| word != "--bench") else {
        bail!("no corpus given; start the bench with 'cargo xtask bench engine'");
    };
    let folders: Vec<PathBuf> = std::fs::read_to_string(list)?.lines().map(Into::into).collect();
    let corpus = corpus::read(&folders)?;
    let bytes: usize = corpus.edits.iter().map(|edit| edit.before.len()).sum();
    println!(
        "{} edits, {:.1} MB before, {} changes; {} pairs left out that no line patch can say",
        corpus.edits.len(),
        bytes as f64 / 1e6,
        corpus.edits.iter().map(|edit| edit.changes).sum::<usize>(),
        corpus.left_out,
    );
    ensure!(corpus.edits.len() >= 1000, "expected at least 1000 edits");
    let mut goals = measure_corpus(&corpus.edits)?;
    goals.extend(growth::measure()?);
    goal::check(&goals)
}

/// What a plan looks at.
fn observe(edit: &Edit, known_digest: bool) -> Result<[Observed<'_>; 1]> {
    let digest = known_digest.then(|| sha256(&edit.before));
    Ok([Observed {
        path: WorkspacePath::new("file")?,
        doc_path: "r/file".into(),
        content: Some(&edit.before),
        digest,
        is_executable: false,
        other: None,
    }])
}

/// What a row does with the edit of an index.
type Work<'a> = &'a dyn Fn(usize, &Edit);

fn measure_corpus(edits: &[Edit]) -> Result<Vec<Goal>> {
    let known = edits.iter().map(|edit| observe(edit, true)).collect::<Result<Vec<_>>>()?;
    let unknown = edits.iter().map(|edit| observe(edit, false)).collect::<Result<Vec<_>>>()?;
    for (edit, observed) in edits.iter().zip(&unknown) {
        ensure!(plan_and_apply(&edit.batch, observed)? == edit.after, "{} came out wrong", edit.name);
    }
    let valid = edits.iter().map(|edit| validate(&edit.batch, &Limits::DEFAULT));
    let valid: Vec<_> = valid.collect::<Result<_, _>>().map_err(|failures| anyhow::anyhow!("{failures:?}"))?;
    let work: [Work<'_>; 6] = [
        &|_, edit| drop(black_box(edit.before.to_vec())),
        &|at, _| {
            if let Ok(plan) = plan(&valid[at], &known[at], &Settings::DEFAULT) {
                black_box(plan.files.first().map(|file| file.content().into_owned()));
            }
        },
        &|at, _| {
            if let Ok(plan) = plan(&valid[at], &unknown[at], &Settings::DEFAULT)
                && let Some(file) = plan.files.first()
            {
                let content = file.content();
                black_box((file.digest_before(), file.digest_after(&content)));
            }
        },
        &|_, edit| {
            black_box((sha256(&edit.before), sha256(&edit.after)));
        },
        &|_, edit| {
            let patch = diffy::Patch::from_str(&edit.diff);
            black_box(patch.ok().and_then(|patch| diffy::apply(&edit.before_text, &patch).ok()));
        },
        &|at, edit| drop(black_box(plan_and_apply(&edit.batch, &known[at]).ok())),
    ];
    let mut rows = [const { Vec::new() }; 6];
    for _ in 0..PASSES {
        for (row, work) in rows.iter_mut().zip(work) {
            row.push(time(|| edits.iter().enumerate().for_each(|(at, edit)| work(at, edit))));
        }
    }
    let [memcpy, bare, digests, sha2, diffy, validated] = rows.map(median);
    let micros = |seconds: f64| seconds * 1e6 / edits.len() as f64;
    println!(
        "us/edit: memcpy {:.2}, plan+apply {:.2}, with validate {:.2}, with digests {:.2}, sha2 twice {:.2}, diffy {:.2}",
        micros(memcpy),
        micros(bare),
        micros(validated),
        micros(digests),
        micros(sha2),
        micros(diffy)
    );
    Ok(vec![
        Goal::at_most("plan + apply / memcpy", bare / memcpy, 3.0),
        Goal::at_most("with both digests / (plan + apply + sha2 twice)", digests / (bare + sha2), 1.1),
        Goal::at_least("diffy's parse + apply / plan + apply", diffy / bare, 5.0),
    ])
}
