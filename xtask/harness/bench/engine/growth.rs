//! How time and memory grow with the file and with the number of changes.

use std::fmt::Write as _;
use std::hint::black_box;

use anyhow::{Context, Result, bail, ensure};
use aptix_engine::digest::sha256;
use aptix_engine::planning::observed::Observed;
use aptix_model::batch::{Batch, Change, Operation};
use aptix_model::path::WorkspacePath;

use crate::corpus::batch;
use crate::goal::{Goal, median};
use crate::measure::{PASSES, peak, plan_and_apply, time};

const FILE: usize = 10 << 20;
const CHANGES: usize = 10_000;

/// A text, evenly spread one-line replacements, and the same as a unified diff.
struct Case {
    text: String,
    batch: Batch,
    diff: String,
}

fn case(bytes: usize, changes: usize) -> Case {
    let lines: Vec<String> =
        (0..bytes / 44).map(|number| format!("line {number:>10} of a text that is made up here")).collect();
    let mut text = String::with_capacity(bytes + lines.len());
    for line in &lines {
        text.push_str(line);
        text.push('\n');
    }
    let step = lines.len() / changes;
    let mut diff = String::from("--- a/file\n+++ b/file\n");
    let olds = lines.chunks(step).take(changes).enumerate().filter_map(|(index, chunk)| match chunk {
        [old, below, ..] => Some((index, old, below)),
        _ => None,
    });
    let replacements = olds.map(|(index, old, below)| {
        let (number, new) = (index * step + 1, format!("replaced {index}"));
        // Writing to a String does not fail.
        let _ = write!(diff, "@@ -{number},2 +{number},2 @@\n-{old}\n+{new}\n {below}\n");
        let operation = Operation::Replace {
            start_line: number as i64,
            end_line: number as i64,
            expected_original_lines: vec![old.clone()],
            new_lines: vec![new],
        };
        Change { key: None, description: None, operation }
    });
    let changes = replacements.collect();
    Case { batch: batch(&text, changes), text, diff }
}

fn observe(case: &Case) -> Result<[Observed<'_>; 1]> {
    Ok([Observed {
        path: WorkspacePath::new("file")?,
        doc_path: "r/file".into(),
        content: Some(case.text.as_bytes()),
        digest: Some(sha256(case.text.as_bytes())),
        is_executable: false,
        other: None,
    }])
}

pub(crate) fn measure() -> Result<Vec<Goal>> {
    let cases = [case(FILE, CHANGES), case(2 * FILE, CHANGES), case(FILE, 2 * CHANGES)];
    let observed = cases.iter().map(observe).collect::<Result<Vec<_>>>()?;
    let ([first, ..], Some(observed_first)) = (&cases, observed.first()) else { bail!("no case") };
    let patch = diffy::Patch::from_str(&first.diff).context("the peer reads the diff")?;
    let peer = diffy::apply(&first.text, &patch).context("the peer applies the diff")?;
    ensure!(plan_and_apply(&first.batch, observed_first)? == peer.as_bytes(), "the engine and the peer disagree");

    let (mut ours, mut theirs) = ([const { Vec::new() }; 3], Vec::new());
    for _ in 0..PASSES {
        for ((times, case), observed) in ours.iter_mut().zip(&cases).zip(&observed) {
            times.push(time(|| {
                black_box(plan_and_apply(&case.batch, observed).ok());
            }));
        }
        theirs.push(time(|| {
            let patch = diffy::Patch::from_str(&first.diff);
            black_box(patch.ok().and_then(|patch| diffy::apply(&first.text, &patch).ok()));
        }));
    }
    let [base, larger, more] = ours.map(median);
    // The file is in memory already; what comes on top is the result and whatever the engine needs.
    let extra = peak(|| {
        black_box(plan_and_apply(&first.batch, observed_first).ok());
    });
    let overhead = extra.saturating_sub(peer.len()) as f64 / f64::from(1 << 20);
    let ratio = median(theirs) / base;
    Ok(vec![
        Goal::at_least("10,000 changes in 10 MB: diffy's parse + apply / ours", ratio, 2.0),
        Goal::at_most("time with the file twice as long / once", larger / base, 2.2),
        Goal::at_most("time with twice the changes / once", more / base, 2.2),
        Goal::at_most("peak memory beyond file and result, MiB", overhead, 1.0),
    ])
}
