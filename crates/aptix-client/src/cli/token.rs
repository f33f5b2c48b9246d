//! Which token is sent to a server: of a file, of the environment, or the one that was kept for the server.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aptix_model::failure::Failure;
use aptix_model::reason::Reason;

use super::trust::TrustArgs;
use crate::connection::{Credentials, Server, ServerUrl, Token};
use crate::workspace::fs::beneath;
use crate::workspace::fs::disk::{self, SystemDisk};
use crate::workspace::roots::own_file;
use crate::workspace::roots::policy_file::{self, PolicyFileError, Readers};

/// Bytes that are read of a token at most.
pub(super) const LIMIT: u64 = 4096;

/// The variable that a token may be in.
const VARIABLE: &str = "APTIX_TOKEN";

/// Where the token for a server comes from.
#[derive(clap::Args, Clone, Debug, Default)]
pub(super) struct TokenArgs {
    /// A file with the token for the server; otherwise that in $APTIX_TOKEN, or that which `aptix login` keeps
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    #[command(flatten)]
    pub(super) trust: TrustArgs,
    /// The directory with the tokens that are kept.
    #[arg(skip)]
    kept: Option<PathBuf>,
}

impl TokenArgs {
    /// Looks for tokens that are kept in the person's configuration.
    pub(super) fn keep_in(&mut self, config_home: &Path) {
        self.kept = Some(config_home.join("aptix/tokens"));
    }

    /// The server, with the token that is sent to it.
    pub(super) fn server(&self, url: &ServerUrl) -> Server {
        let credentials = self.given_source().unwrap_or_else(|| Arc::new(Kept(self.kept_for(url))));
        Server { trust: self.trust.trust(), ..Server::new(url.clone(), credentials) }
    }

    /// The token that is given by a file or the variable.
    pub(super) fn given(&self) -> Option<Result<Token, Failure>> {
        self.given_source()?.token().transpose()
    }

    fn given_source(&self) -> Option<Arc<dyn Credentials>> {
        if let Some(file) = &self.token_file {
            return Some(Arc::new(InFile(file.clone())));
        }
        let token = std::env::var_os(VARIABLE).filter(|token| !token.is_empty())?;
        Some(Arc::new(InVariable(token)))
    }

    /// The file that a token for the server is kept in.
    fn kept_for(&self, url: &ServerUrl) -> Option<PathBuf> {
        let name = url.to_string().replace('%', "%25").replace(':', "%3A").replace('/', "%2F");
        Some(self.kept.as_ref()?.join(name))
    }

    /// Keeps a token for a server, in a file that its owner alone reads. Answers where.
    ///
    /// # Errors
    /// When the system refuses.
    pub(super) fn keep(&self, url: &ServerUrl, token: &Token) -> Result<PathBuf, Failure> {
        let unkept = |why: String| Failure::new(Reason::WriteFailed, format!("the token cannot be kept: {why}"));
        let path = self.kept_for(url).ok_or_else(|| unkept("no directory for it is known".to_owned()))?;
        let (Some(directory), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str())) else {
            return Err(unkept(format!("{} is no place for it", path.display())));
        };
        let held = disk::private_dir(directory).and_then(|()| beneath::open_held(directory));
        let held = held.map_err(|error| unkept(format!("{}: {error}", directory.display())))?;
        let line = format!("{}\n", token.reveal());
        own_file::replace(&SystemDisk, held.as_fd(), held.as_fd(), name, line.as_bytes())
            .map_err(|errno| unkept(format!("{}: {}", path.display(), std::io::Error::from(errno))))?;
        // What others could read or have written is of no use later: that is said now.
        policy_file::of_person(&path, Readers::Owner).map_err(|error| unusable(&path, &error))?;
        Ok(path)
    }

    /// Where the token for a server comes from, and whether there is one that can be sent.
    pub(super) fn look(&self, url: &ServerUrl) -> (String, Result<bool, Failure>) {
        let kept = || self.kept_for(url).map_or_else(String::new, |path| path.display().to_string());
        let source = match &self.token_file {
            Some(file) => file.display().to_string(),
            None if self.given_source().is_some() => VARIABLE.to_owned(),
            None => kept(),
        };
        (source, self.server(url).credentials.token().map(|token| token.is_some()))
    }
}

/// The content of a file that the caller names, whoever may read it.
#[derive(Debug)]
struct InFile(PathBuf);

impl Credentials for InFile {
    fn token(&self) -> Result<Option<Token>, Failure> {
        let mut text = String::new();
        let read = File::open(&self.0).and_then(|file| file.take(LIMIT).read_to_string(&mut text));
        read.map_err(|error| {
            Failure::new(Reason::ReadFailed, format!("failed to read the token in {}: {error}", self.0.display()))
                .hint("name a file that has the token with --token-file FILE, or keep the token with `aptix login`")
        })?;
        text.parse().map(Some).map_err(|error| unreadable(&self.0, &format!("{error}")))
    }
}

/// What the variable holds.
struct InVariable(OsString);

impl std::fmt::Debug for InVariable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(VARIABLE)
    }
}

impl Credentials for InVariable {
    fn token(&self) -> Result<Option<Token>, Failure> {
        let token = self.0.to_str().unwrap_or_default().parse();
        token
            .map(Some)
            .map_err(|error| Failure::new(Reason::InvalidRequest, format!("{VARIABLE} is of no use: {error}")))
    }
}

/// What is kept, in a file that nobody else reads or writes.
#[derive(Debug)]
struct Kept(Option<PathBuf>);

impl Credentials for Kept {
    fn token(&self) -> Result<Option<Token>, Failure> {
        let Some(path) = &self.0 else { return Ok(None) };
        let found = policy_file::of_person(path, Readers::Owner).map_err(|error| unusable(path, &error))?;
        let Some(bytes) = found else { return Ok(None) };
        let token = String::from_utf8_lossy(&bytes).parse();
        token.map(Some).map_err(|error| unreadable(path, &format!("{error}")))
    }
}

/// Why a kept token is of no use, with the command that mends its permissions if they are the reason.
fn unusable(path: &Path, error: &PolicyFileError) -> Failure {
    let failure = unreadable(path, &error.to_string());
    match error {
        PolicyFileError::Mode { mending, .. } => failure.hint(format!("run `{mending}`")),
        _ => failure,
    }
}

fn unreadable(path: &Path, why: &str) -> Failure {
    Failure::new(Reason::InvalidRequest, format!("the token in {} is of no use: {why}", path.display()))
        .hint("write the token there anew, or keep it with `aptix login`")
}
