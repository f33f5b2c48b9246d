//! A workspace that advances from generation to generation: its content in each, and the batch that leads to the next.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use aptix_client::workspace::commit::change::{Becomes, Change, Content};
use aptix_client::workspace::read::listing::Listings;
use aptix_client::workspace::read::place::Place;
use aptix_client::workspace::read::resolve::resolve;
use aptix_client::workspace::read::snapshot::{self, Original};
use aptix_client::workspace::roots::workspace::Workspace;
use aptix_client::workspace::transaction::{self, CommitOptions};
use aptix_engine::digest::sha256;
use aptix_engine::target::ValidTarget;
use aptix_model::path::WorkspacePath;

use crate::tree::{Entry, Tree};

/// What happens to one file from one generation to the next, and back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// Its bytes change.
    Edit,
    /// It is created in a new directory, then removed.
    Make,
    /// It is removed, then created.
    Remove,
    /// It moves to another directory and changes there, then back.
    Move,
    /// It becomes executable, then not.
    Run,
    /// It and another one, which is executable, swap their names, then swap them again.
    Swap,
    /// Its name gets another case, then the first one again.
    Case,
}

impl Kind {
    /// Everything a batch can do.
    pub(crate) const ALL: [Self; 7] =
        [Self::Edit, Self::Make, Self::Move, Self::Remove, Self::Run, Self::Swap, Self::Case];
}

/// Directories that the files are spread over.
const DIRECTORIES: usize = 3;

/// Which files there are, and what happens to them.
#[derive(Clone, Debug)]
pub(crate) struct Sequence {
    kinds: Vec<Kind>,
    /// Lines of each file.
    lines: usize,
}

/// What a batch does to one file.
struct FileChange {
    path: String,
    becomes: Outcome,
}

enum Outcome {
    Bytes(Vec<u8>, Option<bool>),
    MovedTo(String, Vec<u8>),
    Gone,
}

impl Sequence {
    /// So many files, to which these things happen in turn.
    pub(crate) fn new(files: usize, kinds: &[Kind]) -> Self {
        Self { kinds: kinds.iter().copied().cycle().take(files).collect(), lines: 12 }
    }

    /// Sequences of one file with each kind, of three files with all kinds, and of many files.
    pub(crate) fn all() -> ([Self; 7], [Self; 3], [Self; 2]) {
        let [edit, make, moved, remove, run, swap, case] = Kind::ALL;
        let triple = [[edit, make, moved], [moved, remove, run], [swap, case, edit]];
        let many = [10, 100].map(|files| Self::new(files, &Kind::ALL));
        (Kind::ALL.map(|kind| Self::new(1, &[kind])), triple.map(|kinds| Self::new(3, &kinds)), many)
    }

    /// The sequence with longer files.
    pub(crate) fn of_lines(self, lines: usize) -> Self {
        Self { lines, ..self }
    }

    /// How many files a batch changes.
    pub(crate) fn files(&self) -> usize {
        self.kinds.len()
    }

    fn text(&self, file: usize, generation: usize) -> Vec<u8> {
        let mut text = format!("generation {generation} of file {file}\n");
        for line in 1..self.lines {
            text.push_str(&format!("line {line} of file {file}, which stays as it is\n"));
        }
        text.into_bytes()
    }

    /// What is in the workspace in a generation.
    pub(crate) fn tree(&self, generation: usize) -> Tree {
        let mut tree: Tree = (0..DIRECTORIES).map(|number| (format!("d{number}"), Entry::Dir)).collect();
        let is_odd = generation % 2 == 1;
        let mut put = |path: String, bytes, runs| tree.insert(path, Entry::File { bytes, runs });
        let mut made = Vec::new();
        for (file, kind) in self.kinds.iter().enumerate() {
            let (here, text) = (file % DIRECTORIES, self.text(file, generation));
            match kind {
                Kind::Edit => drop(put(format!("d{here}/edit{file}.txt"), text, false)),
                Kind::Make => {
                    let past = (1..=generation).step_by(2);
                    made.extend(past.map(|odd| (format!("d{here}/new{odd}"), Entry::Dir)));
                    if is_odd {
                        put(format!("d{here}/new{generation}/made{file}.txt"), text, false);
                    }
                }
                Kind::Remove if is_odd => {}
                Kind::Remove => drop(put(format!("d{here}/gone{file}.txt"), text, false)),
                Kind::Move if is_odd => {
                    put(format!("d{}/there{file}.txt", (file + 1) % DIRECTORIES), text, false);
                }
                Kind::Move => drop(put(format!("d{here}/here{file}.txt"), text, false)),
                Kind::Run => drop(put(format!("d{here}/run{file}.sh"), self.text(file, 0), is_odd)),
                Kind::Swap => {
                    let [plain, runs] = swapped(file, is_odd);
                    put(plain, text, false);
                    put(runs, self.text(file, 0), true);
                }
                Kind::Case => drop(put(cased(file, is_odd), text, false)),
            }
        }
        tree.extend(made);
        tree
    }

    /// The batch from a generation to the next, file by file in the sequence's order.
    fn file_changes(&self, generation: usize) -> Vec<FileChange> {
        let (next, is_odd) = (generation + 1, generation % 2 == 1);
        let file_changes = |(file, kind): (usize, &Kind)| {
            let (here, text) = (file % DIRECTORIES, self.text(file, next));
            let (path, becomes) = match kind {
                Kind::Edit => (format!("d{here}/edit{file}.txt"), Outcome::Bytes(text, None)),
                Kind::Make if is_odd => (format!("d{here}/new{generation}/made{file}.txt"), Outcome::Gone),
                Kind::Make => (format!("d{here}/new{next}/made{file}.txt"), Outcome::Bytes(text, None)),
                Kind::Remove if is_odd => (format!("d{here}/gone{file}.txt"), Outcome::Bytes(text, None)),
                Kind::Remove => (format!("d{here}/gone{file}.txt"), Outcome::Gone),
                Kind::Move => {
                    let names =
                        [format!("d{here}/here{file}.txt"), format!("d{}/there{file}.txt", (file + 1) % DIRECTORIES)];
                    let [from, to] = names;
                    if is_odd { (to, Outcome::MovedTo(from, text)) } else { (from, Outcome::MovedTo(to, text)) }
                }
                Kind::Run => (format!("d{here}/run{file}.sh"), Outcome::Bytes(self.text(file, 0), Some(!is_odd))),
                Kind::Swap => {
                    let [plain, runs] = swapped(file, is_odd);
                    let other = Outcome::MovedTo(plain.clone(), self.text(file, 0));
                    return vec![
                        FileChange { path: plain, becomes: Outcome::MovedTo(runs.clone(), text) },
                        FileChange { path: runs, becomes: other },
                    ];
                }
                Kind::Case => (cased(file, is_odd), Outcome::MovedTo(cased(file, !is_odd), text)),
            };
            vec![FileChange { path, becomes }]
        };
        self.kinds.iter().enumerate().flat_map(file_changes).collect()
    }

    /// The same batch as a document: a diff.
    pub(crate) fn document(&self, generation: usize) -> String {
        let exists = self.tree(generation);
        let text = |path: &str| match exists.get(path) {
            Some(Entry::File { bytes, .. }) => Some(String::from_utf8_lossy(bytes).into_owned()),
            _ => None,
        };
        let diffs = self.file_changes(generation).into_iter().map(|FileChange { path, becomes }| {
            let old = text(&path);
            let (to, new, header) = match becomes {
                Outcome::Gone => (None, Vec::new(), "deleted file mode 100644\n".to_owned()),
                Outcome::Bytes(bytes, Some(true)) => {
                    (Some(path.clone()), bytes, "old mode 100644\nnew mode 100755\n".into())
                }
                Outcome::Bytes(bytes, Some(false)) => {
                    (Some(path.clone()), bytes, "old mode 100755\nnew mode 100644\n".into())
                }
                Outcome::Bytes(bytes, None) if old.is_none() => {
                    (Some(path.clone()), bytes, "new file mode 100644\n".to_owned())
                }
                Outcome::Bytes(bytes, None) => (Some(path.clone()), bytes, String::new()),
                Outcome::MovedTo(to, bytes) => {
                    let header = format!("rename from {path}\nrename to {to}\n");
                    (Some(to), bytes, header)
                }
            };
            let name = |side: &str, path: Option<&String>| {
                path.map_or("/dev/null".to_owned(), |path| format!("{side}/{path}"))
            };
            let (from, head) =
                (old.as_ref().map(|_| &path), format!("diff --git a/{path} b/{}\n", to.as_ref().unwrap_or(&path)));
            let (old, new) = (old.unwrap_or_default(), String::from_utf8_lossy(&new));
            let mut options = diffy::DiffOptions::new();
            options.set_original_filename(name("a", from)).set_modified_filename(name("b", to.as_ref()));
            let hunks = (old != new).then(|| options.create_patch(&old, &new).to_string());
            head + &header + &hunks.unwrap_or_default()
        });
        diffs.collect()
    }

    /// Advances a workspace to the next generation.
    ///
    /// # Errors
    /// Those of the commit keep their type.
    pub(crate) fn advance(&self, workspace: &Workspace, generation: usize, options: CommitOptions<'_>) -> Result<()> {
        let file_changes = self.file_changes(generation);
        let found = file_changes.iter().map(|change| {
            let to = match &change.becomes {
                Outcome::MovedTo(to, _) => Some(find_beside(workspace, to, Some(&change.path))?.0),
                Outcome::Bytes(..) | Outcome::Gone => None,
            };
            Ok((find(workspace, &change.path)?, to))
        });
        let found = found.collect::<Result<Vec<_>>>()?;
        let changes = file_changes.iter().zip(&found).map(|(change, ((place, original), to))| {
            let becomes = match (&change.becomes, to) {
                (Outcome::Bytes(bytes, executable), _) => Becomes::Content(content(bytes, *executable)),
                (Outcome::MovedTo(_, bytes), Some(to)) => Becomes::Moved(to, content(bytes, None)),
                (Outcome::MovedTo(..), None) | (Outcome::Gone, _) => Becomes::Nothing,
            };
            let before = original.as_ref().map(|original| sha256(&original.bytes));
            Change { place, original: original.as_ref(), before, becomes }
        });
        let changes: Vec<_> = changes.collect();
        let notices = transaction::commit(workspace, &changes, options)?;
        ensure!(notices.is_empty(), "no other process writes, yet the commit reports {notices:?}");
        Ok(())
    }

    /// Which of two generations a tree is: whether it is the new one.
    ///
    /// # Errors
    /// When it is neither, with what differs.
    pub(crate) fn is_new(&self, found: &Tree, old: usize, new: usize) -> Result<bool> {
        which(found, &self.tree(old), &self.tree(new))
    }

    /// As [`Self::is_new`], whichever of the directories are there that batches make.
    ///
    /// # Errors
    /// As [`Self::is_new`].
    pub(crate) fn is_new_except_dirs(&self, found: &Tree, old: usize, new: usize) -> Result<bool> {
        which(&without_dirs(found), &without_dirs(&self.tree(old)), &without_dirs(&self.tree(new)))
    }
}

/// The names of two files that swap them: of the one that cannot be run, and of the one that can.
fn swapped(file: usize, is_odd: bool) -> [String; 2] {
    let dir = |number: usize| number % DIRECTORIES;
    let [one, other] = [format!("d{}/one{file}.txt", dir(file)), format!("d{}/other{file}.txt", dir(file + 1))];
    if is_odd { [other, one] } else { [one, other] }
}

/// The name of a file whose case changes.
fn cased(file: usize, is_odd: bool) -> String {
    let name = if is_odd { "CASE" } else { "Case" };
    format!("d{}/{name}{file}.txt", file % DIRECTORIES)
}

fn which(found: &Tree, before: &Tree, after: &Tree) -> Result<bool> {
    if found == before {
        return Ok(false);
    }
    ensure!(
        found == after,
        "the tree is neither old nor new; beside the old one\n{}beside the new one\n{}",
        differences(found, before),
        differences(found, after)
    );
    Ok(true)
}

fn without_dirs(tree: &Tree) -> Tree {
    let others = tree.iter().filter(|(name, entry)| !(**entry == Entry::Dir && name.contains("/new")));
    others.map(|(name, entry)| (name.clone(), entry.clone())).collect()
}

fn content(bytes: &Vec<u8>, executable: Option<bool>) -> Content<'_> {
    Content { digest: sha256(bytes), executable, attributes: None, bytes }
}

fn find(workspace: &Workspace, path: &str) -> Result<(Place, Option<Original>)> {
    find_beside(workspace, path, None)
}

/// Finds a file, where the one at another path is renamed.
fn find_beside(workspace: &Workspace, path: &str, left: Option<&str>) -> Result<(Place, Option<Original>)> {
    let target = ValidTarget::Path(WorkspacePath::new(path)?);
    let mut listings = Listings::default();
    left.into_iter().for_each(|left| listings.leave(0, left.to_owned()));
    let place = resolve(workspace, &mut listings, &target);
    let place = place.map_err(|error| anyhow::anyhow!("cannot resolve {path}: {error:?}"))?;
    let original =
        snapshot::read(workspace, &mut listings, &place, 1 << 20).with_context(|| format!("cannot read {path}"))?;
    Ok((place, original))
}

fn differences(found: &Tree, expected: &Tree) -> String {
    let names: BTreeMap<_, ()> = found.keys().chain(expected.keys()).map(|name| (name, ())).collect();
    let differing = names.into_keys().filter(|name| found.get(*name) != expected.get(*name));
    differing
        .map(|name| format!("  {name}: expected {:?}, found {:?}\n", expected.get(name), found.get(name)))
        .collect()
}
