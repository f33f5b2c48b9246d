//! Cases: a history of three random trees, a diff of it in one of the ways in which git writes them, and what becomes of
//! the diff and of the tree on their way.

use anyhow::Result;

use crate::case::Case;
use crate::git::Repo;
use crate::memory::Tree;
use crate::perturb::perturb;
use crate::random::Random;
use crate::tree::{change, edit, name, one_in, pick, tree};

/// Cases that come of one diff.
pub(crate) const SIZE: usize = 4;

/// A history, from its own numbers.
pub(crate) struct History {
    pub(crate) number: u64,
    pub(crate) trees: [Tree; 3],
    random: Random,
}

impl History {
    pub(crate) fn new(seed: u64, number: u64) -> Self {
        // Neighbouring numbers give unlike sequences.
        let mut random = Random::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(number));
        let first = tree(&mut random);
        let second = change(&first, &mut random);
        let third = change(&second, &mut random);
        Self { number, trees: [first, second, third], random }
    }

    /// The cases of the history, whose trees a repository has.
    pub(crate) fn cases(mut self, repo: &Repo) -> Result<Vec<Case>> {
        let random = &mut self.random;
        let way = Way::any(random);
        let (diff, to) = way.write(repo, self.number)?;
        if diff.is_empty() {
            return Ok(Vec::new());
        }
        let [before, ..] = &self.trees;
        let case = |random: &mut Random, is_plain: bool| {
            let mut case = Case {
                tree: before.clone(),
                diff: diff.clone(),
                written: way.words.clone(),
                perturbed: Vec::new(),
                truth: Some(self.trees[to].clone()),
            };
            if !is_plain {
                if one_in(random, 3) {
                    change_tree(&mut case, &self.trees[to], random);
                }
                let changes = usize::from(case.perturbed.is_empty()) + usize::from(one_in(random, 4));
                for _ in 0..changes {
                    perturb(&mut case, random);
                }
                case.truth = None;
            }
            case
        };
        let plain = case(random, true);
        Ok(std::iter::once(plain).chain((1..SIZE).map(|_| case(random, false))).collect())
    }
}

/// How git writes a diff.
struct Way {
    kind: Kind,
    flags: Vec<String>,
    /// Both, in words that classes go by.
    words: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Diff,
    /// With the table of files above it.
    Stat,
    /// One or two mails.
    Mails(usize),
    Show,
    Log,
    /// Two diffs one after the other, of which the second begins where the first ends.
    Series,
}

impl Way {
    fn any(random: &mut Random) -> Self {
        let kind = match random.below(20) {
            0..13 => Kind::Diff,
            13 => Kind::Stat,
            14 => Kind::Mails(1),
            15 => Kind::Mails(2),
            16 => Kind::Show,
            17 => Kind::Log,
            _ => Kind::Series,
        };
        let mut flags = Vec::new();
        if one_in(random, 2) {
            flags.push(format!("-U{}", pick(random, &[0, 1, 2, 4, 5])));
        }
        let renames =
            ["--find-renames", "--find-copies", "--no-renames", "--find-copies-harder", "-M20%", "--no-renames"];
        flags.push((*pick(random, &renames)).to_owned());
        if one_in(random, 8) {
            flags.push("--break-rewrites".to_owned());
        }
        match random.below(6) {
            0 => flags.push("--full-index".to_owned()),
            1 => flags.push(format!("--abbrev={}", 4 + random.below(12))),
            _ => {}
        }
        if one_in(random, 8) {
            flags.push("--no-prefix".to_owned());
        } else if one_in(random, 20) {
            flags.extend(["--src-prefix=old/".to_owned(), "--dst-prefix=new/".to_owned()]);
        } else if one_in(random, 20) {
            flags.extend(["--src-prefix=i/".to_owned(), "--dst-prefix=w/".to_owned()]);
        }
        let algorithms = ["--patience", "--histogram", "--minimal", "--inter-hunk-context=2", "--function-context"];
        if one_in(random, 3) {
            flags.push((*pick(random, &algorithms)).to_owned());
        }
        if one_in(random, 10) {
            flags.push("--irreversible-delete".to_owned());
        }
        let word = match kind {
            Kind::Diff => "diff",
            Kind::Stat => "stat",
            Kind::Mails(_) => "mail",
            Kind::Show => "show",
            Kind::Log => "log",
            Kind::Series => "series",
        };
        let words = flags.iter().cloned().chain([word.to_owned()]).collect();
        Self { kind, flags, words }
    }

    /// The diff, and the tree that it leads to.
    fn write(&self, repo: &Repo, number: u64) -> Result<(Vec<u8>, usize)> {
        let at = |step: usize| format!("{number}-{step}");
        let run = |words: &[&str], ends: &[String]| {
            let words = words.iter().map(|word| (*word).to_owned());
            repo.output(&words.chain(self.flags.iter().cloned()).chain(ends.iter().cloned()).collect::<Vec<_>>())
        };
        let range = |from: usize, to: usize| format!("{}..{}", at(from), at(to));
        Ok(match self.kind {
            Kind::Diff => (run(&["diff", "--no-color"], &[at(0), at(1)])?, 1),
            Kind::Stat => (run(&["diff", "--no-color", "--stat", "-p"], &[at(0), at(1)])?, 1),
            Kind::Mails(many) => (run(&["format-patch", "--stdout"], &[range(0, many)])?, many),
            Kind::Show => (run(&["show", "--no-color"], &[at(1)])?, 1),
            Kind::Log => (run(&["log", "--no-color", "-1", "-p"], &[at(1)])?, 1),
            Kind::Series => {
                let first = run(&["diff", "--no-color"], &[at(0), at(1)])?;
                ([first, run(&["diff", "--no-color"], &[at(1), at(2)])?].concat(), 2)
            }
        })
    }
}

/// Changes the tree after the diff was made.
fn change_tree(case: &mut Case, after: &Tree, random: &mut Random) {
    let paths: Vec<String> = case.tree.keys().cloned().collect();
    let path = pick(random, &paths);
    match random.below(8) {
        0..4 => {
            for path in &paths {
                if let Some(file) = case.tree.get_mut(path)
                    && one_in(random, 2)
                {
                    file.bytes = edit(&file.bytes, random);
                }
            }
            case.perturbed.push("tree edited");
        }
        4 => {
            // Lines above everything: what a hunk is about moves.
            for file in case.tree.values_mut() {
                let lines = "above\n".repeat(1 + random.below(4));
                file.bytes.splice(0..0, lines.into_bytes());
            }
            case.perturbed.push("tree edited");
        }
        5 => {
            case.tree = after.clone();
            case.perturbed.push("already applied");
        }
        6 => {
            if let Some(file) = case.tree.remove(path) {
                case.tree.insert(name(random), file);
            }
            case.perturbed.push("tree moved");
        }
        _ => {
            let file = case.tree[path].clone();
            case.tree.insert(name(random), file);
            case.perturbed.push("tree moved");
        }
    }
}
