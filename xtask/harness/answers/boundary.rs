//! Applies an answer as users do: by the built `aptix apply --json`, or by the client library in this process.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use aptix_client::apply::acting::Acting;
use aptix_client::apply::proposal::Decision;
use aptix_client::apply::{ApplyOptions, Mode, Refusal, apply};
use aptix_client::policy::caller::Caller;
use aptix_client::policy::files::PolicyFiles;
use aptix_client::workspace::fs::disk::SystemDisk;
use aptix_client::workspace::roots::workspace::Workspace;
use aptix_model::batch::{Batch, Origin};
use aptix_model::documents::{self, Dialect};
use aptix_model::failure::Failure;
use aptix_model::report::{Report, Warning};
use serde_json::Value;
use tempfile::TempDir;

use crate::program::{self, private, program};
use crate::tree::Tree;

/// The result of an attempt, and the files it left.
#[derive(Clone, Default, Debug)]
pub(crate) struct Said {
    /// Whether it calls itself successful.
    pub(crate) success: bool,
    /// Every error of a refusal.
    pub(crate) errors: Vec<SaidError>,
    /// Codes and messages.
    pub(crate) warnings: Vec<(String, String)>,
    /// The label of the batch; the command does not print it.
    pub(crate) label: Option<String>,
    pub(crate) after: Tree,
}

/// One error of a refusal.
#[derive(Clone, Debug)]
pub(crate) struct SaidError {
    pub(crate) code: String,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
    /// The file's path as the object states it.
    pub(crate) path: String,
    /// Real lines that are shown with it.
    pub(crate) nearest: Vec<String>,
}

/// A directory with a project in `ws` and the client's own directories, laid out anew when a file changed.
pub(crate) struct Place {
    directory: TempDir,
    before: Tree,
}

impl Place {
    pub(crate) fn new(before: &Tree) -> Result<Self> {
        let place = Self { directory: program::place()?, before: before.clone() };
        before.lay_out(&place.workspace())?;
        Ok(place)
    }

    fn workspace(&self) -> PathBuf {
        self.directory.path().join("ws")
    }

    /// The files as they are now.
    pub(crate) fn tree(&self) -> Result<Tree> {
        Tree::read(&self.workspace())
    }

    /// Restores the files if they have changed.
    pub(crate) fn restore(&self) -> Result<()> {
        if self.tree()? != self.before {
            fs::remove_dir_all(self.workspace())?;
            self.before.lay_out(&self.workspace())?;
        }
        Ok(())
    }

    /// Sends an answer to the standard input of `aptix apply --json`.
    pub(crate) fn run_program(&self, answer: &str) -> Result<Said> {
        let mut command = Command::new(program("aptix")?);
        private(&mut command, self.directory.path());
        command.args(["apply", "--json"]).current_dir(self.workspace());
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        // Dropped at the end of the statement, which closes it.
        let sent = process.stdin.take().context("the process has an input")?.write_all(answer.as_bytes());
        let output = process.wait_with_output()?;
        sent.context("cannot send the answer")?;
        let stderr = String::from_utf8_lossy(&output.stderr);
        let answer: Value = serde_json::from_slice(&output.stdout)
            .with_context(|| format!("no JSON object on stdout, {}, and on stderr: {stderr}", output.status))?;
        let success = answer.get("success") == Some(&Value::Bool(true));
        ensure!(
            success == output.status.success(),
            "success is {success}, and the process ended with {}",
            output.status
        );
        Ok(Said {
            success,
            errors: list(&answer, "errors").map(error).collect(),
            warnings: (list(&answer, "warnings"))
                .chain(list(&answer, "files").flat_map(|file| list(file, "warnings")))
                .map(|warning| (text(warning, "code"), text(warning, "message")))
                .collect(),
            label: None,
            after: self.tree()?,
        })
    }

    /// Opens the project for the library.
    pub(crate) fn open(&self) -> Result<Library<'_>> {
        let root = self.workspace().to_string_lossy().parse().map_err(|error| anyhow::anyhow!("{error}"))?;
        let state = self.directory.path().join("library");
        let workspace = Workspace::open(&[root], &state, Box::new(SystemDisk))?;
        let policies = PolicyFiles::new(&self.directory.path().join("config"), Caller::Shell);
        Ok(Library { place: self, workspace, policies })
    }
}

/// The client library, at work on a project.
pub(crate) struct Library<'a> {
    place: &'a Place,
    workspace: Workspace,
    policies: PolicyFiles,
}

impl Library<'_> {
    /// Applies an answer as the command does without a terminal.
    pub(crate) fn apply(&self, answer: &[u8], dialect: Option<Dialect>) -> Result<Said> {
        let mut label = None;
        let mut warnings = Vec::new();
        let outcome = self.attempt(answer, dialect, &mut label, &mut warnings);
        let (success, errors) = match outcome {
            Ok(report) => {
                warnings.extend(report.warnings);
                warnings.extend(report.files.into_iter().flat_map(|file| file.warnings));
                (true, Vec::new())
            }
            Err(refusal) => (false, refusal.failures.iter().map(SaidError::of).collect()),
        };
        let warnings = warnings.into_iter().map(|warning| (warning.code.to_string(), warning.message)).collect();
        Ok(Said { success, errors, warnings, label, after: self.place.tree()? })
    }

    fn attempt(
        &self,
        answer: &[u8],
        dialect: Option<Dialect>,
        label: &mut Option<String>,
        warnings: &mut Vec<Warning>,
    ) -> Result<Report, Refusal> {
        let policy = self.policies.read(&self.workspace).map_err(|error| Refusal::from(error.failure()))?;
        let document = documents::parse(answer, dialect).map_err(Refusal::from)?;
        *warnings = document.warnings;
        label.clone_from(&document.batch.label);
        let batch: Batch = document.batch;
        let origin = Origin::default();
        let options = ApplyOptions {
            policy: &policy,
            origin: &origin,
            diff_bytes: 0,
            mode: Mode::Commit,
            prepared: None,
            acting: Acting::UNKNOWN,
        };
        apply(&self.workspace, &batch, options, &mut |proposal| {
            let unanswered = proposal.unanswered();
            if unanswered.is_empty() { Decision::Apply } else { Decision::Refuse(unanswered) }
        })
    }
}

impl SaidError {
    fn of(failure: &Failure) -> Self {
        Self {
            code: failure.reason.code().to_owned(),
            message: failure.to_string(),
            hint: failure.hint.clone(),
            path: failure.path.clone().unwrap_or_default(),
            nearest: failure.nearest.iter().map(|excerpt| excerpt.text.clone()).collect(),
        }
    }
}

/// The members of the array that an object has under a key.
fn list<'a>(object: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    object.get(key).and_then(Value::as_array).into_iter().flatten()
}

/// The text that an object has under a key.
fn text(object: &Value, key: &str) -> String {
    object.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn error(error: &Value) -> SaidError {
    SaidError {
        code: text(error, "code"),
        message: text(error, "message"),
        hint: error["hint"].as_str().map(str::to_owned),
        path: text(error, "path"),
        nearest: list(error, "nearest").map(|excerpt| text(excerpt, "text")).collect(),
    }
}
