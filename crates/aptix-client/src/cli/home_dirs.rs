//! The directories of the user in which Aptix keeps its own things.

use std::path::PathBuf;

use anyhow::Context;

/// Where Aptix keeps its own things.
#[derive(clap::Args, Debug)]
pub(super) struct HomeDirs {
    /// Where programs keep their state, instead of $XDG_STATE_HOME
    #[arg(long, hide = true, global = true, value_name = "DIR", value_parser = absolute)]
    state_home: Option<PathBuf>,
    /// Where programs keep their configuration, instead of $XDG_CONFIG_HOME
    #[arg(long, hide = true, global = true, value_name = "DIR", value_parser = absolute)]
    config_home: Option<PathBuf>,
}

fn absolute(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    if path.is_absolute() { Ok(path) } else { Err("expected an absolute path".to_owned()) }
}

impl HomeDirs {
    pub(super) fn state_home(&self) -> anyhow::Result<PathBuf> {
        home(self.state_home.as_ref(), "XDG_STATE_HOME", ".local/state")
    }

    pub(super) fn config_home(&self) -> anyhow::Result<PathBuf> {
        home(self.config_home.as_ref(), "XDG_CONFIG_HOME", ".config")
    }
}

/// A directory of the person's: given, from the environment, or in its usual place in their home. A relative one in the
/// environment means nothing, as the specification has it.
fn home(given: Option<&PathBuf>, variable: &str, usual: &str) -> anyhow::Result<PathBuf> {
    let from_environment = || std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute());
    given
        .cloned()
        .or_else(from_environment)
        .or_else(|| Some(std::env::home_dir()?.join(usual)))
        .with_context(|| format!("no home directory is known: set {variable} to a directory of your own"))
}
