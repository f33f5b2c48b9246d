//! What a command logs, to stderr, and in which form.

use std::io::IsTerminal as _;

use anstream::ColorChoice;
use aptix_model::events::trace;
use clap::{ArgAction, ValueEnum};
use tracing::Level;
use tracing_subscriber::EnvFilter;

use super::output;
use super::progress;
use crate::person::prompt;

/// What is logged, and how everything is printed.
#[derive(clap::Args, Debug)]
pub(super) struct LogArgs {
    /// Log to stderr what is done; -vv to look for an error
    #[arg(short, long, global = true, action = ArgAction::Count)]
    verbose: u8,
    /// Log errors alone
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    quiet: bool,
    /// Whether output is coloured; auto: on a terminal
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t = clap::ColorChoice::Auto)]
    color: clap::ColorChoice,
    /// Print what takes more than a screen at once, instead of with the pager
    #[arg(long = "no-pager", global = true)]
    has_no_pager: bool,
    /// What shows that: a command of the shell, less if absent
    #[arg(long, hide = true, global = true, value_name = "COMMAND", env = "PAGER", hide_env_values = true)]
    pub(super) pager: Option<String>,
    /// What is logged: a level, or target=level pairs
    #[arg(long, hide = true, global = true, value_name = "FILTER", env = "APTIX_LOG")]
    log: Option<String>,
    /// How it is logged
    #[arg(long, hide = true, global = true, value_enum, default_value_t = LogFormat::Text, env = "APTIX_LOG_FORMAT")]
    log_format: LogFormat,
}

/// The form of a log.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum LogFormat {
    /// Lines for people.
    Text,
    /// One JSON object a line.
    Json,
}

/// Which kind of command logs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Logs {
    /// An agent: by default it logs what it does, unless that goes to the terminal on which it asks.
    Agent,
    /// Everything else: by default it logs what is wrong.
    Command,
}

impl Logs {
    /// What is logged of everything, and of the log events if that is something else.
    fn default_filter(self) -> (Level, String) {
        match self {
            Self::Agent if !std::io::stderr().is_terminal() => (Level::INFO, Level::INFO.to_string()),
            Self::Agent | Self::Command => (Level::WARN, format!("{},{}=off", Level::WARN, trace::TARGET)),
        }
    }
}

impl LogArgs {
    /// Logs from now on, for the rest of the process.
    pub(super) fn begin(&self, logs: Logs) {
        let color = match self.color {
            clap::ColorChoice::Auto => ColorChoice::Auto,
            clap::ColorChoice::Always => ColorChoice::Always,
            clap::ColorChoice::Never => ColorChoice::Never,
        };
        color.write_global();
        if self.has_no_pager {
            output::without_pager();
        }
        let (level, default) = logs.default_filter();
        let level = match (self.quiet, self.verbose) {
            (true, _) => Level::ERROR,
            (false, 0) => level,
            (false, 1) => Level::INFO,
            (false, _) => Level::DEBUG,
        };
        let asked = (self.quiet || self.verbose > 0).then(|| level.to_string());
        // What the command line asks for counts more than the environment.
        let given = asked.or_else(|| self.log.clone().filter(|filter| !filter.is_empty()));
        let filter = EnvFilter::builder().with_default_directive(level.into()).parse_lossy(given.unwrap_or(default));
        let log = tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_writer(|| {
                progress::make_way();
                prompt::Aside
            })
            // A command whose stderr is closed works on; the complaint about it would panic.
            .log_internal_errors(false)
            .with_ansi(anstream::AutoStream::choice(&std::io::stderr()) != ColorChoice::Never);
        match self.log_format {
            LogFormat::Text => log.init(),
            LogFormat::Json => log.json().flatten_event(true).init(),
        }
    }
}
