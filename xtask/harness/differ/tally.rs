//! What came of all cases, by class.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use anyhow::{Result, ensure};

use crate::case::Case;
use crate::classes;
use crate::git::Theirs;
use crate::judge::{Judged, Outcome};
use crate::memory::{File, Tree, code};
use crate::ours::Ours;
use crate::seen;

/// Cases that are shown of each kind that fails the run.
const SHOWN: usize = 2;

#[derive(Default)]
pub(crate) struct Tally {
    cases: usize,
    outcomes: BTreeMap<Outcome, usize>,
    /// Differences without a class, by what both sides say.
    unknown: BTreeMap<(Outcome, String), (usize, Vec<String>)>,
    /// Cases that the program did too, and what it did otherwise.
    sampled: usize,
    otherwise: Vec<String>,
}

impl Tally {
    pub(crate) fn add(
        &mut self,
        number: u64,
        position: usize,
        case: &Case,
        judged: Judged,
        sampled: Option<Option<String>>,
    ) {
        self.cases += 1;
        *self.outcomes.entry(judged.outcome).or_default() += 1;
        self.sampled += usize::from(sampled.is_some());
        if let Some(difference) = sampled.flatten() {
            self.otherwise.push(format!("case {number}.{position}: {difference}\n{}", shown(case, &judged)));
        }
        if matches!(judged.outcome, Outcome::Same | Outcome::Refused | Outcome::Class(_)) {
            return;
        }
        let key = (judged.outcome, sides(&judged));
        let (count, examples) = self.unknown.entry(key).or_default();
        *count += 1;
        if examples.len() < SHOWN {
            examples.push(format!("case {number}.{position}\n{}", shown(case, &judged)));
        }
    }

    pub(crate) fn print(&self, seed: u64, time: Duration) {
        for ((outcome, sides), (count, examples)) in &self.unknown {
            println!("== {count} {outcome:?}: {sides}");
            examples.iter().for_each(|example| println!("{example}"));
        }
        self.otherwise.iter().take(SHOWN).for_each(|line| println!("== {line}"));
        println!("{:<8} class", "cases");
        for (outcome, count) in &self.outcomes {
            let name = match outcome {
                Outcome::Same => "both apply it, to the same tree",
                Outcome::Refused => "both refuse it",
                Outcome::Class(name) => name,
                Outcome::Unlike => "UNLIKE TREES",
                Outcome::OnlyTheirs => "UNCLASSIFIED: only git applies it",
                Outcome::OnlyOurs => "UNCLASSIFIED: only Aptix applies it",
                Outcome::Untrue => "NOT THE TREE THAT THE DIFF WAS MADE OF",
            };
            println!("{count:<8} {name}");
        }
        for ((outcome, sides), (count, _)) in &self.unknown {
            println!("unclassified: {count:<6} {outcome:?}: {sides}");
        }
        println!(
            "differ: {} diffs, {} of them by the program too, {} otherwise there; seed {seed}, {:.0} s",
            self.cases,
            self.sampled,
            self.otherwise.len(),
            time.as_secs_f64()
        );
    }

    /// # Errors
    /// When trees differ, a difference has no class, or the program does something else than the engine.
    pub(crate) fn verdict(&self, wanted: usize) -> Result<()> {
        let unknown: usize = self.unknown.values().map(|(count, _)| count).sum();
        ensure!(unknown == 0, "{unknown} differences without a class");
        ensure!(self.otherwise.is_empty(), "the program did something else {} times", self.otherwise.len());
        ensure!(self.cases >= wanted, "only {} cases of {wanted}", self.cases);
        let both = self.outcomes.get(&Outcome::Same).copied().unwrap_or_default();
        ensure!(both * 4 >= self.cases, "only {both} of {} cases were applied by both", self.cases);
        let unseen = classes::names().filter(|name| !self.outcomes.contains_key(&Outcome::Class(name)));
        unseen.for_each(|name| println!("not seen in this run: {name}"));
        Ok(())
    }
}

/// What both sides say, in few words.
fn sides(judged: &Judged) -> String {
    let ours = match &judged.ours {
        Ours::Applied { warnings, .. } => format!("applied {}", warnings.join(" ")),
        Ours::Refused(failure) => code(failure),
    };
    let theirs = judged.theirs.iter().map(|(flags, theirs)| {
        let said = match theirs {
            Theirs::Applied(_) => "applied".to_owned(),
            Theirs::Refused(message) => seen::kind(message),
        };
        format!("git {}: {said}", flags.join(" "))
    });
    format!("{ours} | {}", theirs.collect::<Vec<_>>().join(" | "))
}

/// A case with what both sides did: of trees, the files that the diff names or that changed.
pub(crate) fn shown(case: &Case, judged: &Judged) -> String {
    let diff = String::from_utf8_lossy(&case.diff);
    let mut text =
        format!("written {:?}, perturbed {:?}, {:?}\n  tree\n", case.written, case.perturbed, judged.outcome);
    let results = judged.theirs.iter().filter_map(|(_, theirs)| match theirs {
        Theirs::Applied(tree) => Some(tree),
        Theirs::Refused(_) => None,
    });
    let results: Vec<&Tree> = match &judged.ours {
        Ours::Applied { tree, .. } => results.chain([tree]).collect(),
        Ours::Refused(_) => results.collect(),
    };
    let is_touched = |path: &String| {
        !path.is_ascii()
            || diff.contains(path.as_str())
            || results.iter().any(|tree| tree.get(path) != case.tree.get(path))
    };
    put(&mut text, case.tree.iter().filter(|(path, _)| is_touched(path)));
    text += "  diff\n";
    // Writing to a string does not fail.
    for line in diff.split_inclusive('\n') {
        let _ = writeln!(text, "    {line:?}");
    }
    let put_changed = |text: &mut String, tree: &Tree| {
        put(text, tree.iter().filter(|(path, file)| case.tree.get(*path) != Some(file)));
        let gone = case.tree.keys().filter(|path| !tree.contains_key(*path));
        gone.for_each(|path| text.push_str(&format!("    {path} is gone\n")));
    };
    match &judged.ours {
        Ours::Refused(failure) => {
            let _ = writeln!(text, "  aptix refuses: {failure}");
        }
        Ours::Applied { tree, warnings } => {
            let _ = writeln!(text, "  aptix applies {warnings:?}");
            put_changed(&mut text, tree);
        }
    }
    for (flags, theirs) in &judged.theirs {
        match theirs {
            Theirs::Refused(message) => {
                let _ = writeln!(text, "  git {flags:?} refuses: {}", message.trim_end());
            }
            Theirs::Applied(tree) => {
                let _ = writeln!(text, "  git {flags:?} applies");
                put_changed(&mut text, tree);
            }
        }
    }
    if let Some(truth) = &case.truth {
        text += "  truth\n";
        put_changed(&mut text, truth);
    }
    text
}

fn put<'a>(text: &mut String, files: impl Iterator<Item = (&'a String, &'a File)>) {
    for (path, file) in files {
        let star = if file.is_executable { "*" } else { "" };
        let _ = writeln!(text, "    {star}{path}: {:?}", String::from_utf8_lossy(&file.bytes));
    }
}
