//! One case: what both sides do with it, and what that means.

use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::case::Case;
use crate::classes;
use crate::git::{self, Theirs};
use crate::memory::{File, Tree};
use crate::mend::mend;
use crate::ours::{self, Ours};
use crate::proof::{Proof, prove};
use crate::seen::Seen;

/// What came of a case.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Outcome {
    /// Both accept it, and made the same tree.
    Same,
    /// Both refuse it.
    Refused,
    /// They differ in a known way: a class.
    Class(&'static str),
    /// Both accept it, and made different trees.
    Unlike,
    /// Git alone accepts it, and no class covers that.
    OnlyTheirs,
    /// Aptix alone accepts it, and no class covers that.
    OnlyOurs,
    /// An unperturbed diff led to another tree than the one that it was made of.
    Untrue,
}

/// A case with what both sides did.
pub(crate) struct Judged {
    pub(crate) ours: Ours,
    /// With the flags of git that were used.
    pub(crate) theirs: Vec<(Vec<&'static str>, Theirs)>,
    pub(crate) outcome: Outcome,
}

/// Lets both apply a case, and compares.
pub(crate) fn judge(case: &Case, folder: &Path) -> Result<Judged> {
    let ours = ours::apply(&case.tree, &case.diff)?;
    let mut theirs = Vec::new();
    for flags in counterparts(case, &ours) {
        let mended = if flags.contains(&MENDED) { mend(&case.diff) } else { case.diff.clone() };
        let real: Vec<&str> = flags.iter().copied().filter(|flag| flag.starts_with('-')).collect();
        let found = git::apply(folder, &case.tree, &mended, &real)?;
        let is_enough = matches!(found, Theirs::Applied(_)) || matches!(ours, Ours::Refused(_));
        theirs.push((flags, found));
        if is_enough {
            break;
        }
    }
    let (_, last) = theirs.last().context("git is always asked")?;
    let proof = match (&ours, last) {
        (Ours::Applied { tree, .. }, Theirs::Applied(theirs)) if tree == theirs => Proof::Bytes,
        (Ours::Applied { tree, .. }, _) => prove(case, tree, folder)?,
        (Ours::Refused(_), _) => Proof::None,
    };
    let outcome = outcome(case, &ours, last, proof);
    Ok(Judged { ours, theirs, outcome })
}

/// No flag of git: the harness mends the diff, because `--recount` knows fewer ends of a hunk, and no lost blanks.
const MENDED: &str = "(mended)";

/// The commands of git that do what Aptix is asked to do. The first that applies it counts.
fn counterparts(case: &Case, ours: &Ours) -> Vec<Vec<&'static str>> {
    let mut flags = Vec::new();
    if case.is_written("-U0") {
        flags.push("--unidiff-zero");
    }
    if case.is_written("--no-prefix") {
        flags.push("-p0");
    }
    let Ours::Applied { warnings, .. } = ours else { return vec![flags] };
    let has = |code: &str| warnings.iter().any(|warning| warning == code);
    // What the warnings say that Aptix did is asked of git as well.
    let with = |flag: Option<&'static str>| flags.iter().copied().chain(flag).collect::<Vec<_>>();
    let unprefixed = (has("NO_PREFIX") && !flags.contains(&"-p0")).then_some("-p0");
    if has("HUNK_COUNTS") {
        // A hunk's lines are counted anew, as Aptix did.
        // Git anchors a hunk without context on one side at that edge of the file, unless an option disables that.
        let all: [&[&str]; 4] = [&[MENDED], &["--recount"], &["--unidiff-zero", MENDED], &[]];
        return all.map(|more| [with(unprefixed), more.to_vec()].concat()).to_vec();
    }
    vec![with(unprefixed)]
}

fn outcome(case: &Case, ours: &Ours, theirs: &Theirs, proof: Proof) -> Outcome {
    let (is_true, is_same) = match (ours, theirs, &case.truth) {
        (Ours::Applied { tree, .. }, Theirs::Applied(theirs), truth) => {
            (truth.as_ref().is_none_or(|truth| truth == tree), tree == theirs)
        }
        (Ours::Applied { tree, .. }, _, Some(truth)) => (truth == tree, false),
        _ => (true, false),
    };
    let other = match (ours, theirs) {
        (Ours::Refused(_), Theirs::Refused(_)) => return Outcome::Refused,
        // Where git makes the same of it, a series of diffs with copies may lead elsewhere than its commits did.
        _ if is_same => return Outcome::Same,
        _ if !is_true => Outcome::Untrue,
        (Ours::Applied { .. }, Theirs::Applied(_)) => Outcome::Unlike,
        (Ours::Refused(_), Theirs::Applied(_)) => Outcome::OnlyTheirs,
        (Ours::Applied { .. }, Theirs::Refused(_)) => Outcome::OnlyOurs,
    };
    classes::of(&Seen { case, ours, theirs, proof }).map_or(other, |class| Outcome::Class(class.name))
}

/// Lets the program do what was done in memory, and returns what is different.
pub(crate) fn by_program(case: &Case, ours: &Ours, folder: &Path) -> Result<Option<String>> {
    let (is_applied, tree) = ours::run(folder, &case.tree, &case.diff)?;
    let expected = match ours {
        Ours::Applied { tree, .. } => tree,
        Ours::Refused(_) => &case.tree,
    };
    let should = matches!(ours, Ours::Applied { .. });
    let is_same = is_applied == should && tree == *expected;
    Ok((!is_same).then(|| format!("the program {}, the engine {}", word(is_applied), word(should))))
}

const fn word(is_applied: bool) -> &'static str {
    if is_applied { "applies it" } else { "refuses it" }
}

/// Shows that a wrong result is seen: of a tree, of a missing refusal, of a mode.
pub(crate) fn control() -> Result<()> {
    let file = |text: &str, is_executable| File { bytes: text.as_bytes().to_vec(), is_executable };
    let tree = |text: &str, mode| Tree::from([("f".to_owned(), file(text, mode))]);
    let case =
        Case { tree: tree("a\n", false), diff: Vec::new(), written: Vec::new(), perturbed: Vec::new(), truth: None };
    let applied = |tree: Tree| Ours::Applied { tree, warnings: Vec::new() };
    let found = |ours: &Ours, theirs: Tree| outcome(&case, ours, &Theirs::Applied(theirs), Proof::None);
    let right = applied(tree("b\n", false));
    ensure!(found(&right, tree("b\n", false)) == Outcome::Same, "equal trees are equal");
    for wrong in [tree("b", false), tree("b\n", true), tree("c\n", false), Tree::new()] {
        ensure!(found(&applied(wrong), tree("b\n", false)) == Outcome::Unlike, "a wrong tree is not seen");
    }
    let unknown = outcome(&case, &right, &Theirs::Refused("some new message".to_owned()), Proof::Bytes);
    ensure!(unknown == Outcome::OnlyOurs, "a difference without a class is not seen");
    let refused = Theirs::Refused("error: patch failed: f:1\nerror: f: patch does not apply".to_owned());
    let wanted = Outcome::Class("not at an edge of the file");
    for (proof, wanted) in [(Proof::Bytes, wanted), (Proof::Lines, Outcome::OnlyOurs), (Proof::None, Outcome::OnlyOurs)]
    {
        ensure!(outcome(&case, &right, &refused, proof) == wanted, "a place that git would not take is not seen");
    }
    let truth = Case { truth: Some(tree("c\n", false)), ..case.clone() };
    let untrue = outcome(&truth, &right, &Theirs::Refused("some new message".to_owned()), Proof::Bytes);
    ensure!(untrue == Outcome::Untrue, "a tree that the diff was not made of is not seen");
    Ok(())
}
