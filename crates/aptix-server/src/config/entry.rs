//! A value that a source gives for a key, and where that is.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use aptix_model::id::WorkspaceId;

use super::given::Given;
use super::keys::Key;

/// Where a value comes from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Origin {
    /// Nothing sets the key.
    Default,
    /// This variable of the environment.
    Environment(String),
    /// This line of the configuration file.
    File {
        /// The file.
        path: Arc<Path>,
        /// The line, from 1.
        line: usize,
    },
    /// An option of the command line.
    CommandLine,
}

impl fmt::Display for Origin {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => out.write_str("default"),
            Self::Environment(variable) => write!(out, "environment {variable}"),
            Self::File { path, line } => write!(out, "{}:{line}", path.display()),
            Self::CommandLine => out.write_str("command line"),
        }
    }
}

/// Which of two values for a key takes effect: the greater one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Rank {
    /// A variable that is read by all our programs.
    General,
    /// The configuration file.
    File,
    /// `APTIX_SERVER_<KEY>`.
    Environment,
    /// The command line.
    CommandLine,
}

/// A value that a source gives for a key.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) key: &'static Key,
    /// The workspace that it is for; `None` for the server as a whole.
    pub(super) workspace: Option<WorkspaceId>,
    pub(super) rank: Rank,
    pub(super) given: Given,
    pub(super) origin: Origin,
}
