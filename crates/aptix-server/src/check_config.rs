//! The command `check-config`: what is wrong with a configuration, or what takes effect and where it comes from.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use aptix_server::config::{Config, KEYS, Setting, Sources};
use aptix_server::tls::Tls;
use serde_json::{Value, json};

/// Which configuration, and how it is printed.
#[derive(clap::Args)]
pub(crate) struct CheckConfig {
    /// Configuration file (TOML), as the server would be started with
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Reads the configuration as the server would, with the variables of this environment.
///
/// # Errors
/// When nothing can be printed.
pub(crate) fn check_config(command: CheckConfig) -> anyhow::Result<ExitCode> {
    let sources =
        Sources { command_line: Vec::new(), environment: std::env::vars_os().collect(), file: command.config };
    let read = sources.read();
    let (settings, faults) = match &read {
        Ok(effective) => (effective.settings.as_slice(), unusable_files(&effective.config)),
        Err(faults) => (&[][..], faults.iter().map(ToString::to_string).collect()),
    };
    let mut out = std::io::stdout().lock();
    let printed = if command.json {
        writeln!(out, "{}", json!({ "settings": settings.iter().map(object).collect::<Vec<_>>(), "faults": faults }))
    } else {
        // Nothing can be done about a closed stderr.
        faults.iter().for_each(|fault| drop(writeln!(std::io::stderr(), "error: {fault}")));
        settings.iter().try_for_each(|setting| writeln!(out, "{setting}"))
    };
    printed.context("failed to write to stdout")?;
    Ok(if faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What is wrong with the files that the configuration names.
fn unusable_files(config: &Config) -> Vec<String> {
    let files = config.tls.files().ok().flatten();
    files.and_then(|files| Tls::open(files).err()).map(|error| error.to_string()).into_iter().collect()
}

fn object(setting: &Setting) -> Value {
    let change = KEYS.iter().find(|key| key.name == setting.key).map(|key| key.change.word());
    json!({
        "key": setting.name,
        "value": setting.value,
        "from": setting.origin.to_string(),
        "changesAt": change,
    })
}
