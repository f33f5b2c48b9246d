//! What came of edits that were sent twice, counted by dialect and form.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use aptix_model::documents::Dialect;
use aptix_model::failure::Failure;
use aptix_model::reason::Reason;

use super::form::{Form, Single};
use crate::memory::code;

/// Examples that are shown of each kind.
const SHOWN: usize = 3;
/// Bytes of a document that is shown.
const SHOWN_BYTES: usize = 700;

/// What came of an edit, sent twice.
pub(super) enum Outcome {
    /// The dialect does not say it in this form.
    Unsaid(&'static str),
    /// The first time it did not do what it says.
    Wrong,
    /// The first time it was taken for a second time.
    TakenForSecond(Box<Failure>),
    /// The first time it was refused for another reason.
    Refused(Box<Failure>),
    /// The second time it was refused.
    Once(Box<Failure>),
    /// The second time it changed nothing.
    Same,
    /// The second time it changed the file again.
    Doubled,
}

#[derive(Default)]
struct Row {
    /// Refused the second time: all of them, and those refused as `ALREADY_APPLIED`.
    once: usize,
    already_applied: usize,
    same: usize,
    doubled: usize,
    wrong: usize,
    taken_for_second: usize,
    refused: usize,
    unsaid: usize,
}

#[derive(Default)]
pub(super) struct Report {
    rows: BTreeMap<(&'static str, Form), Row>,
    /// Refusals of the first sending, by dialect and class, with examples.
    classes: BTreeMap<(&'static str, String), (usize, Vec<String>)>,
    /// Why the dialect does not say a change.
    unsaid: BTreeMap<(&'static str, &'static str), usize>,
    /// What is wrong, by dialect and class.
    wrong: BTreeMap<(&'static str, String), (usize, Vec<String>)>,
}

impl Report {
    pub(super) fn add(
        &mut self,
        dialect: Dialect,
        form: Form,
        single: &Single,
        step: &str,
        document: &[u8],
        outcome: Outcome,
    ) {
        let row = self.rows.entry((dialect.name(), form)).or_default();
        let shown = |what: &str| {
            let end = document.len().min(SHOWN_BYTES);
            let text = String::from_utf8_lossy(&document[..end]);
            format!("{what}, {}, {step}:{}\n{text}\n", form.name(), single.file.path)
        };
        let (list, class, example) = match outcome {
            Outcome::Unsaid(reason) => {
                row.unsaid += 1;
                *self.unsaid.entry((dialect.name(), reason)).or_default() += 1;
                return;
            }
            Outcome::Once(failure) => {
                row.once += 1;
                row.already_applied += usize::from(failure.reason == Reason::AlreadyApplied);
                return;
            }
            Outcome::Same => {
                row.same += 1;
                return;
            }
            Outcome::Doubled => {
                row.doubled += 1;
                (&mut self.wrong, format!("DOUBLED, {}", single.kind()), shown("doubled"))
            }
            Outcome::Wrong => {
                row.wrong += 1;
                (&mut self.wrong, format!("WRONG, {}", single.kind()), shown("wrong the first time"))
            }
            Outcome::TakenForSecond(failure) => {
                row.taken_for_second += 1;
                (&mut self.classes, class(&failure, single), shown(&failure.to_string()))
            }
            Outcome::Refused(failure) => {
                row.refused += 1;
                (&mut self.classes, format!("other: {}", class(&failure, single)), shown(&failure.to_string()))
            }
        };
        let (count, examples) = list.entry((dialect.name(), class)).or_default();
        *count += 1;
        if examples.len() < SHOWN {
            examples.push(example);
        }
    }

    pub(super) fn print(&self, total: usize, seed: u64) {
        println!("sent twice: changes of {total} places of real files, seed {seed}");
        println!(
            "dialect           form                edits  refused by name   same doubled  wrong      refused at first   \
             other  unsaid"
        );
        for ((dialect, form), row) in &self.rows {
            let Row { once, already_applied, same, doubled, wrong, taken_for_second, refused, unsaid } = row;
            let edits = once + same + doubled + wrong + taken_for_second + refused;
            let share =
                format!("{taken_for_second} ({:.2} in 1000)", 1000.0 * *taken_for_second as f64 / edits.max(1) as f64);
            println!(
                "{dialect:<17} {:<18} {edits:>6} {once:>8} {already_applied:>7} {same:>6} {doubled:>7} {wrong:>6} \
                 {share:>20} {refused:>7} {unsaid:>7}",
                form.name()
            );
        }
        for ((dialect, reason), count) in &self.unsaid {
            println!("not expressible: {dialect}: {count} {reason}");
        }
        for (title, list) in [("refused at first", &self.classes), ("wrong", &self.wrong)] {
            for ((dialect, class), (count, examples)) in list {
                println!("{title}: {dialect}: {count} {class}");
                for example in examples {
                    println!("    {}", example.replace('\n', "\n    "));
                }
            }
        }
    }

    /// # Errors
    /// When an edit took effect twice, or did something else than it says.
    pub(super) fn verdict(&self) -> Result<()> {
        let sum = |of: fn(&Row) -> usize| self.rows.values().map(of).sum::<usize>();
        let (doubled, wrong, refused) = (sum(|row| row.doubled), sum(|row| row.wrong), sum(|row| row.refused));
        let edits = sum(|row| row.once + row.same);
        println!("sent twice: {edits} took effect once, {doubled} doubled, {wrong} wrong, {refused} refused otherwise");
        ensure!(doubled == 0, "{doubled} edits took effect twice");
        ensure!(wrong == 0, "{wrong} edits did not do what they say");
        Ok(())
    }
}

fn class(failure: &Failure, single: &Single) -> String {
    format!("{}, {}", code(failure), single.kind())
}
