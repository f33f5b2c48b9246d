//! `aptix apply`: one document, planned and applied here, without a server.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aptix_engine::planning::settings::Suspicion;
use aptix_model::batch::{Batch, Origin};
use aptix_model::documents::{self, Dialect};
use aptix_model::failure::{Failure, Visible};
use aptix_model::id::{BatchId, SessionId};
use aptix_model::limits::DOCUMENT_BYTES;
use aptix_model::reason::Reason;
use aptix_model::report::Warning;

use crate::apply::proposal::{Decision, Proposal};
use crate::apply::{ApplyOptions, Mode, Refusal, apply};
use crate::person::{Answer, Person, allow_for_ever};
use crate::policy::Policy;
use crate::policy::caller::Caller;
use crate::policy::files::PolicyFiles;
use crate::present::answer::{Shown, Stored};
use crate::present::dialect_terms::in_words_of;
use crate::workspace::fs::disk::SystemDisk;
use crate::workspace::open::OpenError;
use crate::workspace::roots::root::RootSpec;
use crate::workspace::roots::workspace::Workspace;

use super::exit::Exit;
use super::home_dirs::HomeDirs;
use super::output::{self, Form};
use super::progress::{self, Doing};
use crate::apply::path_style::PathStyle;

/// Arguments of `aptix apply`.
#[derive(clap::Args, Debug)]
pub(super) struct Args {
    /// A directory to edit files in, and the name docPaths know it by; may be repeated
    #[arg(long = "root", value_name = "[NAME=]DIR", default_value = ".")]
    pub(super) roots: Vec<RootSpec>,
    #[arg(long, default_value = "auto", value_parser = dialect, help = dialect_help())]
    dialect: DialectChoice,
    /// The session that the document comes from
    #[arg(long, value_name = "ID")]
    session: Option<SessionId>,
    /// Say what would happen, or what it would be refused for, and change nothing
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Answer yes to what a person would be asked: whether a sensitive or secret file may change. What is denied stays denied
    #[arg(long)]
    yes: bool,
    /// Write new text as it is, even if it looks like an edit instead of the content of a file (SUSPECT_CONTENT)
    #[arg(long)]
    verbatim: bool,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub(super) json: bool,
    /// The document; stdin when absent or "-"
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
}

/// A dialect, or none: then the document tells.
#[derive(Clone, Copy, Debug)]
pub(super) struct DialectChoice(pub(super) Option<Dialect>);

/// What `--dialect` says of itself.
pub(super) fn dialect_help() -> String {
    format!("How the document is written: auto, {}", Dialect::ALL.map(Dialect::name).join(", "))
}

pub(super) fn dialect(text: &str) -> Result<DialectChoice, String> {
    if text == "auto" {
        return Ok(DialectChoice(None));
    }
    text.parse()
        .map(|dialect| DialectChoice(Some(dialect)))
        .map_err(|error: documents::UnknownDialect| error.to_string())
}

pub(super) fn run(args: &Args, homes: &HomeDirs, id: BatchId) -> anyhow::Result<Exit> {
    let mut batch = Batch::default();
    let policies = PolicyFiles::new(&homes.config_home()?, Caller::Shell);
    let mode = if args.dry_run { Mode::DryRun } else { Mode::CommitNamed { batch: id } };
    let mut warnings = Vec::new();
    let outcome = attempt(args, &homes.state_home()?, &policies, mode, &mut batch, &mut warnings);
    let shown = Shown {
        batch: &batch,
        dry_run: args.dry_run,
        paths: PathStyle::among(args.roots.len()),
        stored: outcome.as_ref().ok().and_then(|report| Stored::here(mode, report)),
        outcome: outcome.as_ref().map(Some).map_err(|end| &end.refusal),
        warnings: &warnings,
    };
    let printed = output::show(Form::of(args.json), &shown);
    if outcome.is_ok() && !args.dry_run && printed == Exit::Environment {
        output::say("the batch was applied all the same");
    }
    Ok(match (outcome, printed) {
        (Ok(_), printed) => printed,
        (Err(end), _) => end.exit,
    })
}

/// How an attempt ended that changed nothing.
pub(super) struct End {
    pub(super) exit: Exit,
    pub(super) refusal: Refusal,
}

impl From<Refusal> for End {
    fn from(refusal: Refusal) -> Self {
        Self { exit: Exit::of(&refusal), refusal }
    }
}

impl From<OpenError> for End {
    fn from(error: OpenError) -> Self {
        Self { exit: Exit::from(&error), refusal: error.failure().into() }
    }
}

fn attempt(
    args: &Args,
    state_home: &Path,
    policies: &PolicyFiles,
    mode: Mode<'_>,
    batch: &mut Batch,
    warnings: &mut Vec<Warning>,
) -> Result<aptix_model::report::Report, End> {
    let open = if args.dry_run { Workspace::open_to_look } else { Workspace::open };
    progress::begin(Doing::Opening);
    let workspace = open(&args.roots, state_home, Box::new(SystemDisk))?;
    *warnings = displaced_writes(&workspace);
    let mut policy = policies.read(&workspace).map_err(|error| Refusal::from(error.failure()))?;
    if args.verbatim {
        Arc::make_mut(&mut policy).suspect_content = Suspicion::Off;
    }
    progress::end();
    // Said here as well, before anybody is told to mend a document that is refused anyhow.
    policy.may_write().map_err(Refusal::from)?;
    let bytes = read_document(args.file.as_deref()).map_err(Refusal::from)?;
    let document = documents::parse(&bytes, args.dialect.0).map_err(Refusal::from)?;
    drop(bytes);
    warnings.extend(document.warnings);
    *batch = document.batch;
    let dialect = document.dialect;
    progress::begin(Doing::Planning(batch.files.len()));
    let session_id = args.session.as_ref().map(|session| session.as_str().to_owned());
    let options = ApplyOptions {
        policy: &policy,
        origin: &Origin { session_id, ..Origin::default() },
        diff_bytes: usize::MAX,
        mode,
    };
    let paths = PathStyle::among(args.roots.len());
    let applied = apply(&workspace, batch, options, &mut |proposal| match args.dry_run {
        true => foresee(proposal, args.yes),
        false => decide(proposal, args.yes, paths, &policy, policies),
    });
    Ok(applied.map_err(|mut refusal| {
        in_words_of(dialect, batch, &mut refusal.failures);
        refusal
    })?)
}

/// Decides a dry run: refuses what the run would be refused for, and asks nobody.
pub(super) fn foresee(proposal: &Proposal<'_>, agreed: bool) -> Decision {
    let unanswered = proposal.unanswered();
    if agreed || unanswered.is_empty() {
        return Decision::Apply;
    }
    if Person::present().is_none() {
        return Decision::Refuse(unanswered.into_iter().map(|failure| failure.hint(UNATTENDED)).collect());
    }
    progress::end();
    for failure in &unanswered {
        output::say(&format!("a person would be asked: {}", Visible(&failure.to_string())));
    }
    Decision::Apply
}

/// What to do where a person has to agree and there is no terminal.
const UNATTENDED: &str =
    "look at what `--dry-run --yes` shows, then say `--yes`, or answer on a terminal; or leave the file alone";

/// The warnings about displaced writes that no result has named yet.
pub(super) fn displaced_writes(workspace: &Workspace) -> Vec<Warning> {
    let writes = workspace.unnamed_displaced_writes();
    let writes = writes.inspect_err(|error| tracing::warn!(%error, "displaced writes cannot be listed"));
    writes.unwrap_or_default().iter().map(|write| write.warning(workspace)).collect()
}

/// Asks the person at the terminal where somebody has to agree and has not done so beforehand.
pub(super) fn decide(
    proposal: &Proposal<'_>,
    agreed: bool,
    paths: PathStyle,
    policy: &Policy,
    policies: &PolicyFiles,
) -> Decision {
    let writing = Doing::Writing(proposal.batch.files.len());
    let unanswered = proposal.unanswered();
    if agreed || unanswered.is_empty() {
        progress::begin(writing);
        return Decision::Apply;
    }
    let Some(person) = Person::present() else {
        return Decision::Refuse(unanswered.into_iter().map(|failure| failure.hint(UNATTENDED)).collect());
    };
    let subject = proposal.digest();
    progress::end();
    let decided = person.decide("This batch", proposal, subject, paths, policy.approval);
    let Answer { verdict, always } = tokio::runtime::Handle::current().block_on(decided);
    allow_for_ever(proposal, policies, &always);
    match verdict {
        Ok(()) => {
            progress::begin(writing);
            Decision::Approved(subject)
        }
        Err(failures) => Decision::Refuse(failures),
    }
}

/// Reads a document, and no more of it than would already be too much.
pub(super) fn read_document(file: Option<&Path>) -> Result<Vec<u8>, Failure> {
    let file = file.filter(|path| *path != Path::new("-"));
    let limit = DOCUMENT_BYTES as u64 + 1;
    let mut bytes = Vec::new();
    let read = match file {
        Some(path) => File::open(path).and_then(|file| file.take(limit).read_to_end(&mut bytes)),
        None => std::io::stdin().lock().take(limit).read_to_end(&mut bytes),
    };
    let name = file.map_or_else(|| "stdin".to_owned(), |path| path.display().to_string());
    read.map(|_| bytes).map_err(|error| {
        Failure::new(Reason::ReadFailed, format!("cannot read the document from {name}: {error}"))
            .hint("name a file that can be read, or give the document on stdin")
    })
}
