//! A workspace that goes from generation to generation: what is in it in each, and the batch that leads to the next.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use aptix_client::workspace::Workspace;
use aptix_client::workspace::change::{Becomes, Change, Content};
use aptix_client::workspace::listing::Listings;
use aptix_client::workspace::resolve::{Place, resolve};
use aptix_client::workspace::snapshot::{self, Original};
use aptix_client::workspace::transaction::{self, Receipt, Terms};
use aptix_engine::digest::sha256;
use aptix_engine::validate::ValidTarget;
use aptix_model::path::WorkspacePath;
use tempfile::TempDir;

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
    /// It comes to be run, then not.
    Run,
}

impl Kind {
    /// Everything a batch can do.
    pub(crate) const ALL: [Self; 5] = [Self::Edit, Self::Make, Self::Move, Self::Remove, Self::Run];
    /// What a document of whole files can say.
    pub(crate) const WHOLE: [Self; 3] = [Self::Edit, Self::Make, Self::Remove];
}

/// Directories that the files are spread over.
const DIRECTORIES: usize = 3;

/// Which files there are, and what happens to them.
#[derive(Clone, Debug)]
pub(crate) struct Course {
    kinds: Vec<Kind>,
    /// Lines of each file.
    lines: usize,
}

/// What becomes of one file in a batch.
struct Deed {
    path: String,
    becomes: Outcome,
}

enum Outcome {
    Bytes(Vec<u8>, Option<bool>),
    MovedTo(String, Vec<u8>),
    Gone,
}

impl Course {
    /// So many files, to which these things happen in turn.
    pub(crate) fn new(files: usize, kinds: &[Kind]) -> Self {
        Self { kinds: kinds.iter().copied().cycle().take(files).collect(), lines: 12 }
    }

    /// The course with longer files.
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
            }
        }
        tree.extend(made);
        tree
    }

    /// The batch that leads from a generation to the next, file by file in the course's order.
    fn deeds(&self, generation: usize) -> Vec<Deed> {
        let (next, is_odd) = (generation + 1, generation % 2 == 1);
        let deed = |(file, kind): (usize, &Kind)| {
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
            };
            Deed { path, becomes }
        };
        self.kinds.iter().enumerate().map(deed).collect()
    }

    /// The same batch as a document of whole files. It cannot move files, nor say who may run them.
    pub(crate) fn document(&self, generation: usize) -> Result<String> {
        let exists = self.tree(generation);
        let file = |deed: Deed| match deed.becomes {
            Outcome::Gone => Ok(serde_json::json!({"path": deed.path, "operation": "delete"})),
            Outcome::Bytes(bytes, None) => {
                let operation = if exists.contains_key(&deed.path) { "replace" } else { "create" };
                let content = String::from_utf8(bytes)?;
                Ok(serde_json::json!({"path": deed.path, "operation": operation, "content": content}))
            }
            Outcome::Bytes(..) | Outcome::MovedTo(..) => {
                anyhow::bail!("{}: this cannot be said in a document of whole files", deed.path)
            }
        };
        let files = self.deeds(generation).into_iter().map(file).collect::<Result<Vec<_>>>()?;
        Ok(serde_json::json!({ "files": files }).to_string())
    }

    /// Brings a workspace from a generation to the next.
    ///
    /// # Errors
    /// Those of the commit can be told by their type.
    pub(crate) fn advance(&self, workspace: &Workspace, generation: usize, receipt: Option<&Receipt>) -> Result<()> {
        let deeds = self.deeds(generation);
        let found = deeds.iter().map(|deed| {
            let to = match &deed.becomes {
                Outcome::MovedTo(to, _) => Some(find(workspace, to)?.0),
                Outcome::Bytes(..) | Outcome::Gone => None,
            };
            Ok((find(workspace, &deed.path)?, to))
        });
        let found = found.collect::<Result<Vec<_>>>()?;
        let changes = deeds.iter().zip(&found).map(|(deed, ((place, original), to))| {
            let becomes = match (&deed.becomes, to) {
                (Outcome::Bytes(bytes, executable), _) => Becomes::Content(content(bytes, *executable)),
                (Outcome::MovedTo(_, bytes), Some(to)) => Becomes::Moved(to, content(bytes, None)),
                (Outcome::MovedTo(..), None) | (Outcome::Gone, _) => Becomes::Nothing,
            };
            let before = original.as_ref().map(|original| sha256(&original.bytes));
            Change { place, original: original.as_ref(), before, becomes }
        });
        let changes: Vec<_> = changes.collect();
        let notices = transaction::commit(workspace, &changes, Terms { receipt, ..Terms::default() })?;
        ensure!(notices.is_empty(), "nobody else is there, yet the commit says {notices:?}");
        Ok(())
    }

    /// Which of two neighbouring generations a tree is.
    ///
    /// # Errors
    /// When it is neither, with what differs.
    pub(crate) fn generation(&self, found: &Tree, old: usize) -> Result<usize> {
        let (before, after) = (self.tree(old), self.tree(old + 1));
        if *found == before {
            return Ok(old);
        }
        ensure!(
            *found == after,
            "the tree is neither old nor new; beside the old one\n{}beside the new one\n{}",
            differences(found, &before),
            differences(found, &after)
        );
        Ok(old + 1)
    }
}

fn content(bytes: &Vec<u8>, executable: Option<bool>) -> Content<'_> {
    Content { digest: sha256(bytes), executable, attributes: None, bytes }
}

fn find(workspace: &Workspace, path: &str) -> Result<(Place, Option<Original>)> {
    let target = ValidTarget::Path(WorkspacePath::new(path)?);
    let place = resolve(workspace, &mut Listings::default(), &target);
    let place = place.map_err(|error| anyhow::anyhow!("cannot resolve {path}: {error:?}"))?;
    let original = snapshot::read(workspace, &place, 1 << 20).with_context(|| format!("cannot read {path}"))?;
    Ok((place, original))
}

fn differences(found: &Tree, expected: &Tree) -> String {
    let names: BTreeMap<_, ()> = found.keys().chain(expected.keys()).map(|name| (name, ())).collect();
    let differing = names.into_keys().filter(|name| found.get(*name) != expected.get(*name));
    let told =
        differing.map(|name| format!("  {name}: expected {:?}, found {:?}\n", expected.get(name), found.get(name)));
    told.collect()
}

/// A directory that nobody else uses, in memory where that can be had: a process that dies takes nothing with it that was
/// written there.
pub(crate) fn place() -> Result<TempDir> {
    let memory = Path::new("/dev/shm");
    Ok(if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }?)
}

/// Makes a directory as a tree says.
pub(crate) fn lay_out(place: &Path, tree: &Tree) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    std::fs::create_dir_all(place)?;
    for (path, entry) in tree {
        let path = place.join(path);
        match entry {
            Entry::Dir => std::fs::create_dir_all(&path)?,
            Entry::File { bytes, runs } => {
                if let Some(parent) = path.parent() {
                    std::fs::create_dir_all(parent)?;
                }
                std::fs::write(&path, bytes)?;
                if *runs {
                    let mode = path.metadata()?.permissions().mode();
                    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode | (mode & 0o444) >> 2))?;
                }
            }
            Entry::Other(kind) => anyhow::bail!("{} cannot be made: {kind}", path.display()),
        }
    }
    Ok(())
}
