//! What is wrong with a configuration: all of it at once.

use std::fmt;
use std::path::PathBuf;

use aptix_model::id::IdError;

use super::entry::Origin;
use super::keys::{KEYS, Key, PREFIX};

/// One thing that is wrong.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// The file cannot be read.
    #[error("failed to read {}: {error}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        error: std::io::Error,
    },
    /// The file is no TOML.
    #[error("{origin}: {error}")]
    Parse {
        /// Where.
        origin: Origin,
        /// What is wrong.
        error: String,
    },
    /// There is no such key.
    #[error("{origin}: there is no key {name}{}", hint(name))]
    Unknown {
        /// Where it is.
        origin: Origin,
        /// Its name.
        name: String,
    },
    /// A variable of the environment is that of no key.
    #[error("environment: {variable} sets no key{}", hint_of_variable(variable))]
    UnknownVariable {
        /// Its name.
        variable: String,
    },
    /// The key holds for the server as a whole.
    #[error("{origin}: {name} cannot be set for one workspace; move it above the first table")]
    NotPerWorkspace {
        /// Where it is.
        origin: Origin,
        /// Its name.
        name: &'static str,
    },
    /// A key has a value that it cannot have.
    #[error("{origin}: {name} is {found}, expected {expected}")]
    Value {
        /// Where it is.
        origin: Origin,
        /// Its name.
        name: String,
        /// Its value.
        found: String,
        /// Which values it can have.
        expected: String,
    },
    /// A key has a value that it cannot have and that may have a password.
    #[error("{origin}: {name} cannot be used: {why}")]
    Secret {
        /// Where it is.
        origin: Origin,
        /// Its name.
        name: String,
        /// What was expected and found, without the value.
        why: String,
    },
    /// A key of retention contradicts another one.
    #[error("{origin}: {name} is {found}, expected at least {least}, the value of {other}")]
    Contradiction {
        /// Where it is.
        origin: Origin,
        /// Its name.
        name: String,
        /// Its value.
        found: u64,
        /// The key that it contradicts.
        other: &'static str,
        /// The value of that key, which is the least value that fits.
        least: u64,
    },
    /// Values that cannot be used together.
    #[error("{why}")]
    Together {
        /// Why.
        why: String,
    },
    /// A table in `workspaces` is called by what is no workspace's id.
    #[error("{origin}: workspaces has {id:?}, which is no workspace: {error}")]
    Workspace {
        /// Where it is.
        origin: Origin,
        /// What it is called.
        id: String,
        /// What is wrong with it.
        error: IdError,
    },
}

impl Fault {
    /// Its line in the file; those of other sources come behind.
    fn line(&self) -> usize {
        let origin = match self {
            Self::Read { .. } => return 0,
            Self::UnknownVariable { .. } | Self::Together { .. } => return usize::MAX,
            Self::Parse { origin, .. }
            | Self::Unknown { origin, .. }
            | Self::NotPerWorkspace { origin, .. }
            | Self::Value { origin, .. }
            | Self::Secret { origin, .. }
            | Self::Contradiction { origin, .. }
            | Self::Workspace { origin, .. } => origin,
        };
        if let Origin::File { line, .. } = origin { *line } else { usize::MAX }
    }
}

/// Everything that is wrong, in the order of the sources; there is at least one.
#[derive(Debug, thiserror::Error)]
pub struct Faults(Vec<Fault>);

impl Faults {
    /// All of these, those of the file by their lines.
    pub(super) fn new(mut faults: Vec<Fault>) -> Self {
        faults.sort_by_key(Fault::line);
        Self(faults)
    }

    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = &Fault> {
        self.0.iter()
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, fault) in self.0.iter().enumerate() {
            write!(out, "{}{fault}", if index > 0 { "; " } else { "" })?;
        }
        Ok(())
    }
}

fn hint(name: &str) -> String {
    match near(name, KEYS.iter().map(|key| key.name.to_owned())) {
        Some(near) => format!("; hint: {near} is one"),
        None => "; hint: `aptix-server check-config` without this file prints all keys".to_owned(),
    }
}

fn hint_of_variable(variable: &str) -> String {
    // What all of them begin with would make any two alike.
    let name = variable.strip_prefix(PREFIX).unwrap_or(variable);
    match near(name, KEYS.iter().map(Key::variable_suffix)) {
        Some(near) => format!("; hint: {PREFIX}{near} does"),
        None => "; hint: `aptix-server check-config` without it prints all keys".to_owned(),
    }
}

/// The known name that an unknown one is most likely a misspelling of.
fn near(name: &str, known: impl Iterator<Item = String>) -> Option<String> {
    let short: String = name.chars().take(100).collect::<String>().to_lowercase();
    let distance = |known: &String| strsim::damerau_levenshtein(&short, &known.to_lowercase());
    known.min_by_key(distance).filter(|known| distance(known) <= known.len() / 3)
}
