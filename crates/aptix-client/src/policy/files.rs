//! The policy of a workspace, read from its files again for every batch. While a file cannot be read or understood,
//! nothing is written.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use aptix_model::failure::Failure;
use aptix_model::reason::{Detail, Reason};

use super::Policy;
use super::allow::{self, AllowError};
use super::caller::Caller;
use super::document::{self, Author, DocumentError, Stated};
use super::places::Places;
use crate::workspace::fs::disk::Disk;
use crate::workspace::roots::policy_file::{self, PolicyFileError, Readers};
use crate::workspace::roots::root::Root;
use crate::workspace::roots::state::real_path;
use crate::workspace::roots::workspace::Workspace;

/// Where the policy is, and what it was when it was last read.
#[derive(Debug)]
pub struct PolicyFiles {
    own: PathBuf,
    caller: Caller,
    last: Mutex<Option<(Texts, Arc<Policy>)>>,
}

/// What a new policy file has.
const INITIAL: &str = include_str!("initial.toml");

/// How many directories the path of a root's state has from the one of all our state on: `aptix/roots/NAME`.
const STATE_DEPTH: usize = 3;

/// The text of a person's own file, and of each root's.
type Texts = Vec<Option<Vec<u8>>>;

/// A policy file that cannot be followed.
#[derive(Debug, thiserror::Error)]
#[error("the policy file {} cannot be followed: {source}", file.display())]
pub struct PolicyError {
    /// The file.
    pub file: PathBuf,
    /// Why.
    pub source: UnusableFile,
}

/// Why a policy file cannot be followed or added to.
#[derive(Debug, thiserror::Error)]
pub enum UnusableFile {
    /// It cannot be read or written.
    #[error(transparent)]
    File(#[from] PolicyFileError),
    /// It cannot be understood.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// It has no place for a list.
    #[error(transparent)]
    Allow(#[from] AllowError),
    /// A root that no text can name.
    #[error("the path of the root {} is not UTF-8", .0.display())]
    Root(PathBuf),
}

impl PolicyError {
    /// The failure for the author of the edit.
    #[must_use]
    pub fn failure(&self) -> Failure {
        let hint = match &self.source {
            UnusableFile::File(PolicyFileError::Owner { .. }) => {
                "put a file of your own in its place, or run aptix as the user whose it is; until then nothing is written".to_owned()
            }
            UnusableFile::File(PolicyFileError::Mode { mending, .. }) => {
                format!("run `{mending}`; until then nothing is written")
            }
            _ => "correct the file, then run `aptix policy check`; until then nothing is written".to_owned(),
        };
        Failure::new(Reason::PolicyDenied, self.to_string()).detail(Detail::PolicyFile).hint(hint)
    }
}

impl PolicyFiles {
    /// The policy of the user who has this directory for the configuration of programs (`$XDG_CONFIG_HOME` or its
    /// default), for what a caller sends.
    #[must_use]
    pub fn new(config_home: &Path, caller: Caller) -> Self {
        Self { own: config_home.join("aptix/policy.toml"), caller, last: Mutex::new(None) }
    }

    /// The person's own file.
    #[must_use]
    pub fn own(&self) -> &Path {
        &self.own
    }

    /// Each policy file of a workspace, the person's own first, and whether it can be followed; `false` where it is not there.
    #[must_use]
    pub fn look(&self, workspace: &Workspace) -> Vec<(PathBuf, Result<bool, PolicyError>)> {
        let roots = workspace.roots();
        let of_roots = roots.iter().map(|root| {
            let file = policy_file::place_in(root);
            let found = look(&file, policy_file::of_root(root), Author::Root, std::slice::from_ref(root));
            (file, found)
        });
        std::iter::once((self.own.clone(), self.look_own(roots))).chain(of_roots).collect()
    }

    /// Whether the person's own file can be followed for these roots; `false` where it is not there.
    ///
    /// # Errors
    /// It cannot be read or understood.
    pub fn look_own(&self, roots: &[Root]) -> Result<bool, PolicyError> {
        look(&self.own, policy_file::of_person(&self.own, Readers::Any), Author::Person, roots)
    }

    /// Makes the person's own file, in which everything that can be stated is explained and nothing is stated; answers whether there
    /// was none.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn init(&self, disk: &dyn Disk) -> Result<bool, UnusableFile> {
        Ok(policy_file::make_of_person(disk, &self.own, INITIAL.as_bytes())?)
    }

    /// The policy as it is now.
    ///
    /// # Errors
    /// A file is there that cannot be read or understood.
    pub fn read(&self, workspace: &Workspace) -> Result<Arc<Policy>, PolicyError> {
        let refused = |file: PathBuf| |error: PolicyFileError| PolicyError { file, source: error.into() };
        let mut texts = vec![policy_file::of_person(&self.own, Readers::Any).map_err(refused(self.own.clone()))?];
        for root in workspace.roots() {
            texts.push(policy_file::of_root(root).map_err(refused(policy_file::place_in(root)))?);
        }
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((read, policy)) = last.as_ref()
            && *read == texts
        {
            return Ok(Arc::clone(policy));
        }
        let policy = Arc::new(self.understand(workspace, &texts)?);
        if last.is_some() {
            tracing::info!(file = %self.own.display(), "the policy has changed; it holds from this batch on");
        }
        *last = Some((texts, Arc::clone(&policy)));
        Ok(policy)
    }

    /// Checks that a policy is still in force: one that was read before a person looked at a change.
    ///
    /// # Errors
    /// It changed since, or a file is there that cannot be read or understood.
    pub(crate) fn still_holds(&self, workspace: &Workspace, policy: &Policy) -> Result<(), Failure> {
        let now = self.read(workspace).map_err(|error| error.failure())?;
        if std::ptr::eq(Arc::as_ptr(&now), policy) {
            return Ok(());
        }
        let message = "the policy changed while a person looked at the change, so nothing was written";
        let failure = Failure::new(Reason::ApprovalRequired, message).detail(Detail::Changed);
        Err(failure.hint("do the same again: it is checked against the policy as it is now"))
    }

    /// Adds files to the `allow` lists of the user's own file; by their root's number and their path in
    /// it. What else is in the file stays.
    ///
    /// # Errors
    /// The file cannot be read, understood or written.
    pub fn allow(&self, workspace: &Workspace, files: &[(usize, String)]) -> Result<(), UnusableFile> {
        policy_file::change_of_person(workspace, &self.own, |text| {
            let text = String::from_utf8(text).map_err(|_| AllowError::Toml)?;
            let text = with_allowed(text, workspace, files)?;
            document::parse(text.as_bytes(), Author::Person)?;
            Ok(text.into_bytes())
        })
    }

    /// What a person can add themselves to allow these files; nothing if there is no such text.
    #[must_use]
    pub fn allowing(&self, workspace: &Workspace, files: &[(usize, String)]) -> String {
        match with_allowed(String::new(), workspace, files) {
            Ok(text) => format!("To allow it by hand, add to {}:\n{text}", self.own.display()),
            Err(_) => String::new(),
        }
    }

    /// Where policy is kept: its directory, and where its file really is, if that is a link.
    fn places(&self) -> Vec<PathBuf> {
        let directory = self.own.parent().and_then(|directory| real_path(directory).ok());
        directory.into_iter().chain(self.own.canonicalize()).collect()
    }

    /// The paths of this machine that messages about a workspace may hold.
    #[must_use]
    pub fn private_places(&self, workspace: &Workspace) -> Places {
        let named = |path: &Path, name: &str| (path.to_owned(), name.to_owned());
        let (mut known, configuration) = (Vec::new(), "(configuration)");
        for root in workspace.roots() {
            known.push(named(root.path(), root.name()));
            known.extend(root.state().path().ancestors().take(STATE_DEPTH).map(|state| named(state, "(state)")));
        }
        if let Some(directory) = self.own.parent() {
            known.push(named(directory, configuration));
            known.extend(real_path(directory).map(|directory| named(&directory, configuration)));
        }
        known.extend(self.own.canonicalize().map(|file| named(&file, "(configuration)/policy.toml")));
        Places::new(known)
    }

    fn understand(&self, workspace: &Workspace, texts: &Texts) -> Result<Policy, PolicyError> {
        let roots = workspace.roots();
        let mut policy = Policy::unstated(self.caller);
        for (index, root) in roots.iter().enumerate() {
            for own in self.places().iter().filter_map(|place| inside(place, root.path())) {
                policy = policy.closing(index, own);
            }
        }
        let mut texts = texts.iter().map(Option::as_deref);
        if let Some(bytes) = texts.next().flatten() {
            let mut stated = parse(bytes, Author::Person, &self.own, roots)?;
            // Whatever links the user wrote.
            for (root, _) in &mut stated.roots {
                if let Ok(real) = root.canonicalize() {
                    *root = real;
                }
            }
            let paths: Vec<_> = roots.iter().map(Root::path).collect();
            policy = policy.stated(stated, self.own.clone(), &paths);
        }
        for (index, (root, bytes)) in roots.iter().zip(texts).enumerate() {
            let (Some(bytes), file) = (bytes, policy_file::place_in(root)) else { continue };
            let stated = parse(bytes, Author::Root, &file, std::slice::from_ref(root))?;
            policy = policy.merged(stated, Some(index), file);
        }
        Ok(policy)
    }
}

/// Whether a file can be followed, of which this was read; `false` where it is not there.
fn look(
    file: &Path,
    read: Result<Option<Vec<u8>>, PolicyFileError>,
    author: Author,
    about: &[Root],
) -> Result<bool, PolicyError> {
    match read {
        Ok(Some(bytes)) => parse(&bytes, author, file, about).map(|_| true),
        Ok(None) => Ok(false),
        Err(error) => Err(PolicyError { file: file.to_owned(), source: error.into() }),
    }
}

/// Parses a file that is about these roots.
fn parse(bytes: &[u8], author: Author, file: &Path, about: &[Root]) -> Result<Stated, PolicyError> {
    let stated = document::parse(bytes, author).and_then(|stated| {
        about.iter().try_for_each(|root| stated.refuse_absolute(root.path()))?;
        Ok(stated)
    });
    let stated = stated.map_err(|error| PolicyError { file: file.to_owned(), source: error.into() })?;
    if let Some(line) = stated.durability {
        tracing::warn!(file = %file.display(), line,
            "`durability` is no longer a choice and the key is ignored; delete the line");
    }
    Ok(stated)
}

/// A policy file's text with files on the lists of their roots.
fn with_allowed(mut text: String, workspace: &Workspace, files: &[(usize, String)]) -> Result<String, UnusableFile> {
    for (index, root) in workspace.roots().iter().enumerate() {
        let paths: Vec<_> = files.iter().filter(|(root, _)| *root == index).map(|(_, path)| path.clone()).collect();
        if !paths.is_empty() {
            let root = root.path().to_str().ok_or_else(|| UnusableFile::Root(root.path().to_owned()))?;
            text = allow::add(&text, root, &paths)?;
        }
    }
    Ok(text)
}

/// The path in a root of what lies in it; `""` where the root lies in that.
fn inside<'p>(place: &'p Path, root: &Path) -> Option<&'p str> {
    if root.starts_with(place) { Some("") } else { place.strip_prefix(root).ok()?.to_str() }
}
