//! What came of every change, counted by dialect and by kind of files.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Result, ensure};
use aptix_model::documents::Dialect;
use aptix_model::reason::Reason;

use crate::history::FileChange;
use crate::judge::Verdict;
use crate::memory::code;
use crate::variant::Variant;

/// Changes that are shown in full.
const SHOWN: usize = 10;

/// What came of the changes of one dialect among one kind of files.
#[derive(Default)]
struct Row {
    exact: usize,
    ambiguous: usize,
    refused: BTreeMap<String, usize>,
    unsaid: BTreeMap<&'static str, usize>,
    wrong: usize,
    time: Duration,
}

/// What came of whole patches.
#[derive(Default)]
pub(crate) struct Whole {
    exact: usize,
    pub(crate) unsaid: usize,
    refused: Vec<String>,
    wrong: Vec<String>,
    time: Duration,
}

impl Whole {
    pub(crate) fn add(&mut self, step: &str, verdict: &Verdict, time: Duration) {
        self.time += time;
        match verdict {
            Verdict::Exact => self.exact += 1,
            Verdict::Refused(failure) => self.refused.push(format!("{step}: {failure}")),
            Verdict::Wrong(path) => self.wrong.push(format!("{step}: {path}")),
        }
    }
}

/// What git made of the same patches.
#[derive(Default)]
pub(crate) struct Rival {
    exact: usize,
    others: usize,
    time: Duration,
}

impl Rival {
    pub(crate) fn add(&mut self, is_exact: bool, time: Duration) {
        self.time += time;
        if is_exact { self.exact += 1 } else { self.others += 1 }
    }
}

/// Everything that was counted.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) steps: usize,
    /// Entries that are no files.
    pub(crate) left_out: usize,
    pub(crate) whole: Whole,
    pub(crate) rival: Rival,
    rows: BTreeMap<(usize, usize), Row>,
    shown: Vec<String>,
}

impl Tally {
    fn row(&mut self, dialect: Dialect, variant: Variant) -> &mut Row {
        let place = |found: Option<usize>| found.unwrap_or(usize::MAX);
        let dialect = place(Dialect::ALL.iter().position(|known| *known == dialect));
        let variant = place(Variant::ALL.iter().position(|known| *known == variant));
        self.rows.entry((dialect, variant)).or_default()
    }

    pub(crate) fn unsaid(&mut self, dialect: Dialect, variant: Variant, reason: &'static str) {
        *self.row(dialect, variant).unsaid.entry(reason).or_default() += 1;
    }

    pub(crate) fn add(
        &mut self,
        dialect: Dialect,
        variant: Variant,
        step: &str,
        files: &[&FileChange],
        verdict: &Verdict,
        time: Duration,
    ) {
        let row = self.row(dialect, variant);
        row.time += time;
        let result = match verdict {
            Verdict::Exact => {
                row.exact += files.len();
                return;
            }
            Verdict::Refused(failure) if failure.reason == Reason::TextNotUnique => {
                row.ambiguous += files.len();
                return;
            }
            Verdict::Refused(failure) => {
                *row.refused.entry(code(failure)).or_default() += files.len();
                format!("refused: {failure}")
            }
            Verdict::Wrong(path) => {
                row.wrong += 1;
                format!("WRONG: {path}")
            }
        };
        if self.shown.len() < SHOWN {
            let paths: Vec<&str> = files.iter().map(|file| file.path.as_str()).collect();
            self.shown.push(format!("{dialect}, {}, {step}, {}: {result}", variant.name(), paths.join(" ")));
        }
    }

    pub(crate) fn print(&self) {
        println!("{} steps; {} entries left out that are no files", self.steps, self.left_out);
        println!(
            "{:<17} {:<27} {:>7} {:>9} {:>7} {:>5} {:>8}  not expressible",
            "dialect", "files", "exact", "ambiguous", "refused", "wrong", "us/edit"
        );
        for ((dialect, variant), row) in &self.rows {
            let refused: usize = row.refused.values().sum();
            let unsaid: Vec<String> = row.unsaid.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
            let Row { exact, ambiguous, wrong, time, .. } = row;
            println!(
                "{:<17} {:<27} {exact:>7} {ambiguous:>9} {refused:>7} {wrong:>5} {:>8.1}  {}",
                Dialect::ALL.get(*dialect).map_or("", |dialect| dialect.name()),
                Variant::ALL.get(*variant).map_or("", |variant| variant.name()),
                time.as_secs_f64() * 1e6 / (exact + ambiguous + refused + wrong).max(1) as f64,
                unsaid.join(", "),
            );
        }
        let each = |time: Duration, count: usize| time.as_secs_f64() * 1e6 / count.max(1) as f64;
        let Whole { exact, unsaid, refused, wrong, time } = &self.whole;
        println!("whole commits as git writes them, renames included:");
        let all = exact + refused.len() + wrong.len();
        println!(
            "  aptix:     {exact} exact, {} refused, {} wrong, {unsaid} not expressible, {:.1} us each (CPU)",
            refused.len(),
            wrong.len(),
            each(*time, all)
        );
        let Rival { exact, others, time } = self.rival;
        println!(
            "  git apply: {exact} exact, {others} not, {:.1} us each (wall, with its process and its writes)",
            each(time, exact + others)
        );
        for line in self.shown.iter().chain(refused).chain(wrong).take(SHOWN) {
            println!("  {line}");
        }
    }

    /// # Errors
    /// When anything is wrong, or was refused for another reason than that its place is ambiguous.
    pub(crate) fn verdict(&self) -> Result<()> {
        let wrong: usize = self.rows.values().map(|row| row.wrong).sum::<usize>() + self.whole.wrong.len();
        let refused: usize =
            self.rows.values().flat_map(|row| row.refused.values()).sum::<usize>() + self.whole.refused.len();
        ensure!(wrong == 0, "{wrong} changes were made wrongly");
        ensure!(refused == 0, "{refused} changes were refused that can be said");
        Ok(())
    }
}
