//! One typical edit in each dialect, in a small and in a large file, beside the search for the same bytes; and what it
//! costs to find text whose white space differs.

#![expect(clippy::print_stdout, reason = "a measurement is printed")]

#[expect(dead_code, reason = "other benches have lower limits too")]
#[path = "../../goal.rs"]
mod goal;

use std::hint::black_box;

use anyhow::{Context, Result, anyhow, ensure};
use aptix_engine::digest::sha256;
use aptix_engine::plan::{plan, reads};
use aptix_engine::planning::observed::Observed;
use aptix_engine::planning::settings::Settings;
use aptix_engine::valid::ValidBatch;
use aptix_engine::validate::validate;
use aptix_model::batch::Batch;
use aptix_model::documents::{self, Dialect};
use aptix_model::limits::Limits;
use aptix_model::path::WorkspacePath;
use cpu_time::ThreadTime;
use memchr::memmem;
use serde_json::json;

use goal::{Goal, median};

const PASSES: usize = 7;
/// Edits of a pass, so that a small one can be measured.
const ROUNDS: usize = 40;
/// Lines of the text that is looked for.
const LINES: usize = 20;
/// An edit that is found by its text may take so many times the search for that text, in files of either size.
const PLANNED: f64 = 4.0;
/// The dialects that hold it.
const SEARCHED: [Dialect; 3] = [Dialect::SearchPatch, Dialect::StrReplace, Dialect::CodexPatch];
/// Recovery may take so many times the exact search.
const RECOVERY: f64 = 20.0;
/// And so many times more when the file is twice as long.
const GROWTH: f64 = 2.2;

/// A file, and the lines of it that an edit is about.
struct Case {
    text: String,
    first: usize,
    old: String,
    new: String,
}

/// A file of so many bytes, whose lines at three quarters are changed.
fn case(bytes: usize) -> Result<Case> {
    let mut lines = Vec::new();
    let mut length = 0;
    while length < bytes {
        let number = lines.len();
        let line = match number % 4 {
            0 => format!("fn step_{number}(input: &[u8]) -> usize {{\n"),
            1 => format!("    let found = input.iter().position(|byte| usize::from(*byte) == {number});\n"),
            2 => format!("    found.unwrap_or({number})\n"),
            _ => "}\n".to_owned(),
        };
        length += line.len();
        lines.push(line);
    }
    let first = lines.len() / 4 * 3 / 4 * 4;
    let old = lines.get(first..first + LINES).context("the file has so many lines")?;
    let new: Vec<String> = old.iter().map(|line| line.replace("unwrap_or", "map_or")).collect();
    Ok(Case { first, old: old.concat(), new: new.concat(), text: lines.concat() })
}

/// The edit in a dialect.
fn document(dialect: Dialect, case: &Case) -> Option<String> {
    let Case { text, first, old, new } = case;
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    let signed = |sign: char, text: &str| text.lines().map(|line| format!("{sign}{line}\n")).collect::<String>();
    let after = || text.replacen(old.as_str(), new, 1);
    Some(match dialect {
        Dialect::LinePatch => json!({ "files": [{
            "docPath": "root/file", "originalSha256": sha256(text.as_bytes()).to_string(),
            "changes": [{
                "operation": "replace", "startLine": first + 1, "endLine": first + LINES,
                "expectedOriginalLines": lines(old), "newLines": lines(new),
            }],
        }] })
        .to_string(),
        Dialect::CreateFile => json!({ "path": "file", "content": after(), "overwrite": true }).to_string(),
        Dialect::FileBundle => json!({ "files": [{ "path": "file", "content": after() }] }).to_string(),
        Dialect::SearchPatch => search_patch(old, new),
        Dialect::StructuredPatch => {
            json!({ "patches": [{ "path": "file", "replacements": [{ "find": old, "replace": new }] }] }).to_string()
        }
        Dialect::GitPatch => format!(
            "diff --git a/file b/file\n--- a/file\n+++ b/file\n@@ -{0},{LINES} +{0},{LINES} @@\n{1}{2}",
            first + 1,
            signed('-', old),
            signed('+', new)
        ),
        Dialect::CodexPatch => format!(
            "*** Begin Patch\n*** Update File: file\n@@\n{}{}*** End Patch\n",
            signed('-', old),
            signed('+', new)
        ),
        Dialect::SearchReplace => format!("file\n<<<<<<< SEARCH\n{old}=======\n{new}>>>>>>> REPLACE\n"),
        Dialect::StrReplace => {
            json!({ "command": "str_replace", "path": "file", "old_str": old, "new_str": new }).to_string()
        }
        Dialect::Chat => return None,
    })
}

fn search_patch(old: &str, new: &str) -> String {
    json!({ "path": "file", "patches": [{ "operation": "replace", "oldText": old, "newText": new }] }).to_string()
}

fn read(document: &str, dialect: Dialect) -> Result<Batch> {
    let document = documents::parse(document.as_bytes(), Some(dialect));
    Ok(document.map_err(|failures| anyhow!("{dialect}: {failures:?}"))?.batch)
}

/// Plans and applies a batch of one file.
fn apply(valid: &ValidBatch<'_>, text: &str) -> Result<Vec<u8>> {
    ensure!(reads(valid).count() == 1, "one file is edited");
    let snapshot = [Observed {
        path: WorkspacePath::new("file")?,
        doc_path: "root/file".into(),
        content: Some(text.as_bytes()),
        digest: None,
        is_executable: false,
        other: None,
    }];
    let plan = plan(valid, &snapshot, &Settings::DEFAULT).map_err(|failures| anyhow!("{failures:?}"))?;
    Ok(plan.files.first().map(|file| file.content().into_owned()).unwrap_or_default())
}

/// CPU seconds of one call, the median of all passes.
fn measure(mut work: impl FnMut() -> Result<()>) -> Result<f64> {
    let mut samples = Vec::new();
    for _ in 0..PASSES {
        let start = ThreadTime::now();
        for _ in 0..ROUNDS {
            work()?;
        }
        samples.push(start.elapsed().as_secs_f64() / ROUNDS as f64);
    }
    Ok(median(samples))
}

fn edit(case: &Case, dialect: Dialect, document: &str) -> Result<f64> {
    let batch = read(document, dialect)?;
    let valid = validate(&batch, &Limits::DEFAULT).map_err(|failures| anyhow!("{failures:?}"))?;
    let expected = case.text.replacen(case.old.as_str(), &case.new, 1);
    ensure!(apply(&valid, &case.text)? == expected.as_bytes(), "{dialect}: the edit came out wrong");
    measure(|| {
        black_box(apply(&valid, &case.text)?);
        Ok(())
    })
}

fn search(case: &Case) -> Result<f64> {
    measure(|| {
        black_box(memmem::find(black_box(case.text.as_bytes()), case.old.as_bytes()));
        Ok(())
    })
}

/// The edit with every line of it indented otherwise.
fn recovered(case: &Case) -> Result<f64> {
    let shifted = |text: &str| text.lines().map(|line| format!("    {line}\n")).collect::<String>();
    edit(case, Dialect::SearchPatch, &search_patch(&shifted(&case.old), &shifted(&case.new)))
}

fn main() -> Result<()> {
    let (small, large, twice) = (case(10 << 10)?, case(1 << 20)?, case(2 << 20)?);
    println!("{:<18} {:>22} {:>22}", "plan + apply, us", "10 KB", "1 MB");
    let floors = (search(&small)?, search(&large)?);
    let row = |name: &str, (a, b): (f64, f64)| {
        let cell = |time: f64, floor: f64| format!("{:>9.1} ({:>5.1} x)", time * 1e6, time / floor);
        println!("{name:<18} {:>22} {:>22}", cell(a, floors.0), cell(b, floors.1));
    };
    row("memmem", floors);
    let mut goals = Vec::new();
    for dialect in Dialect::ALL {
        let (Some(a), Some(b)) = (document(dialect, &small), document(dialect, &large)) else { continue };
        let times = (edit(&small, dialect, &a)?, edit(&large, dialect, &b)?);
        row(dialect.name(), times);
        if SEARCHED.contains(&dialect) {
            goals.push(Goal::at_most(format!("{dialect} in 10 KB / memmem"), times.0 / floors.0, PLANNED));
            goals.push(Goal::at_most(format!("{dialect} in 1 MB / memmem"), times.1 / floors.1, PLANNED));
        }
    }
    let times = (recovered(&small)?, recovered(&large)?, recovered(&twice)?);
    row("recovered indent", (times.0, times.1));
    goals.push(Goal::at_most("recovery in 1 MB / memmem", times.1 / floors.1, RECOVERY));
    goals.push(Goal::at_most("recovery in 2 MB / in 1 MB", times.2 / times.1, GROWTH));
    goal::check(&goals)
}
