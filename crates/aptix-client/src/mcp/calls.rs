//! What each tool does, for one author: arguments in, an answer out. It blocks.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aptix_engine::hunk::Member;
use aptix_engine::preview::preview;
use aptix_model::batch::{Batch, FileEdit, FilePatch, Origin};
use aptix_model::documents::{self, Dialect};
use aptix_model::failure::Failure;
use aptix_model::id::{BatchId, FilePatchId, Uuid};
use aptix_model::preview::Preview;
use aptix_model::reason::Reason;
use aptix_model::record::{FileIds, UnixMillis};
use aptix_model::report::{Outcome, Report, Warning};
use aptix_model::state::BatchState;
use aptix_model::tools::look;
use aptix_model::tools::prepare::{self, Call};
use aptix_model::tools::preview::{Phase, to_yaml};
use serde::Serialize;
use serde_json::{Value, json};

use super::catalogue::{self, Effect, TOOLS};
use super::clock::Clock;
use super::create_file::Created;
use super::hunks::{CallNumber, Hunks, InUse, Pinned, Plan};
use super::read;
use super::search::{self, Show};
use super::until::Until;
use crate::apply::path_style::PathStyle;
use crate::apply::proposal::{Decision, Proposal};
use crate::apply::{Mode, Order, Refusal, apply, look as plan_only};
use crate::policy::Policy;
use crate::policy::files::PolicyFiles;
use crate::policy::places::Places;
use crate::present::answer::{ErrorAnswer, FileAnswer, Shown, Stored, answer, errors};
use crate::present::dialect_terms;
use crate::workspace::Workspace;

/// Bytes of a call that are looked into before its turn.
const TURN_BYTES: usize = 4 << 10;
/// Bytes of diff that an answer may carry.
const DIFF_BYTES: usize = 256 << 10;

/// What a call is answered with.
#[derive(Debug)]
pub(super) struct Answer {
    /// For programs.
    pub(super) structured: Value,
    /// For models.
    pub(super) text: Vec<String>,
    pub(super) is_error: bool,
}

/// One author: a connection, with its clipboards and its prepared edits.
#[derive(Debug)]
pub(super) struct Author {
    workspace: Arc<Workspace>,
    policies: Arc<PolicyFiles>,
    /// The session, and the owner of prepared edits.
    name: String,
    hunks: Mutex<Hunks>,
    /// By which prepared edits expire and take turns.
    clock: Clock,
}

/// What came of a batch.
struct Applied {
    ids: Vec<FileIds>,
    batch: BatchId,
    report: Report,
}

impl Author {
    pub(super) fn new(workspace: Arc<Workspace>, policies: Arc<PolicyFiles>, name: String) -> Self {
        Self { workspace, policies, name, hunks: Mutex::default(), clock: Clock::start() }
    }

    /// Carries out the call of this number; it writes nothing once nobody waits for it any more.
    pub(super) fn call(&self, number: CallNumber, tool: &str, arguments: &str, until: &Until) -> Answer {
        let mut answer = self.carry_out(number, tool, arguments, until);
        if catalogue::find(tool).is_some_and(|tool| tool.effect == Effect::Writes) {
            self.add_displaced_writes(&mut answer);
        }
        answer
    }

    /// Names the displaced writes that no answer has named yet.
    fn add_displaced_writes(&self, answer: &mut Answer) {
        let writes = match self.workspace.unnamed_displaced_writes() {
            Ok(writes) => writes,
            Err(error) => return tracing::warn!(%error, "displaced writes cannot be listed"),
        };
        for Warning { code, message, .. } in writes.iter().map(|write| write.warning_elsewhere(&self.workspace)) {
            answer.text.push(format!("warning: {code}: {message}"));
            if let Some(warnings) = answer.structured.get_mut("warnings").and_then(Value::as_array_mut) {
                warnings.push(json!({ "code": code, "message": message }));
            }
        }
    }

    fn carry_out(&self, number: CallNumber, tool: &str, arguments: &str, until: &Until) -> Answer {
        match tool {
            "workspace_write_patch" => self.write_patch(arguments, until),
            "patch" => self.patch(arguments, until),
            "workspace_create_file" => self.create_file(arguments, until),
            "read_file" => {
                let read = look::read_file(arguments).and_then(|call| {
                    let lines = read::read(&self.workspace, &*self.policy()?, &call)?;
                    Ok(lines)
                });
                looked(read.map_err(|failure| self.told(failure)), |lines| vec![lines.head(), lines.text.clone()])
            }
            "ripgrep_files" => self.search(arguments, Show::Files, until),
            "ripgrep_content" => self.search(arguments, Show::Lines, until),
            _ if catalogue::find(tool).is_some() => self.prepared_call(number, tool, arguments, until),
            _ => refused(&[prepare::unknown_tool(tool, &TOOLS.iter().map(|tool| tool.name).collect::<Vec<_>>())]),
        }
    }

    /// By what a call takes its turn: when it came, or when what it applies was prepared.
    pub(super) fn turn(&self, tool: &str, arguments: &str) -> (UnixMillis, Uuid) {
        // What names a prepared edit is short; anything longer is refused when its turn has come.
        let is_short = arguments.len() <= TURN_BYTES;
        let applies = (tool == "apply_file_modification" && is_short).then(|| prepare::parse(tool, arguments));
        let prepared = match applies {
            Some(Ok(Call::Apply { hunk })) => self.hunks().turn(hunk),
            _ => None,
        };
        prepared.map_or_else(|| (self.clock.now(), Uuid::nil()), |(created, hunk)| (created, hunk.0))
    }

    fn hunks(&self) -> MutexGuard<'_, Hunks> {
        self.hunks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn policy(&self) -> Result<Arc<Policy>, Failure> {
        self.policies.read(&self.workspace).map_err(|error| error.failure())
    }

    fn places(&self) -> Places {
        self.policies.private_places(&self.workspace)
    }

    /// What a model is told of a refusal: no path of this machine but those in the root.
    fn told(&self, refusal: impl Into<Refusal>) -> Refusal {
        let mut refusal = refusal.into();
        self.places().name_in(&mut refusal.failures);
        refusal
    }

    fn member(&self) -> Member<'_> {
        Member { name: &self.name, may_write: true }
    }

    /// Applies a batch, unless `check` refuses what would come of it.
    fn apply(
        &self,
        dialect: Option<Dialect>,
        batch: &Batch,
        until: &Until,
        check: &mut dyn FnMut(&Proposal<'_>) -> Result<(), Failure>,
    ) -> Result<Applied, Refusal> {
        self.attempt(dialect, batch, until, check).map_err(|refusal| self.told(refusal))
    }

    fn attempt(
        &self,
        dialect: Option<Dialect>,
        batch: &Batch,
        until: &Until,
        check: &mut dyn FnMut(&Proposal<'_>) -> Result<(), Failure>,
    ) -> Result<Applied, Refusal> {
        let policy = self.policy()?;
        let (id, ids) = (BatchId(mint()), FileIds::mint(batch, mint));
        let order = Order {
            policy: &policy,
            origin: &Origin { session_id: Some(self.name.clone()), ..Origin::default() },
            diff_bytes: DIFF_BYTES,
            mode: Mode::CommitNamed { batch: id },
        };
        let mut report = apply(&self.workspace, batch, order, &mut |proposal| {
            let unanswered = proposal.unanswered();
            if !unanswered.is_empty() {
                return Decision::Refuse(unanswered);
            }
            if let Err(failure) = check(proposal) {
                return Decision::Refuse(vec![failure]);
            }
            if until.is_over() { Decision::Refuse(vec![until.failure()]) } else { Decision::Apply }
        })
        .map_err(|refusal| in_words(refusal, dialect, batch))?;
        self.places().name_in_report(&mut report);
        Ok(Applied { ids, batch: id, report })
    }

    /// Reads a document and applies it.
    fn apply_document(
        &self,
        dialect: Dialect,
        text: &str,
        until: &Until,
    ) -> (Batch, Vec<Warning>, Result<Applied, Refusal>) {
        match documents::parse(text.as_bytes(), Some(dialect)) {
            Ok(document) => {
                let applied = self.apply(Some(dialect), &document.batch, until, &mut |_| Ok(()));
                (document.batch, document.warnings, applied)
            }
            Err(failures) => (Batch::default(), Vec::new(), Err(failures.into())),
        }
    }

    fn patch(&self, arguments: &str, until: &Until) -> Answer {
        let (batch, warnings, outcome) = self.apply_document(Dialect::SearchPatch, arguments, until);
        let mut answer = batch_answer(&batch, outcome.as_ref());
        answer.text.extend(warnings.iter().map(|warning| format!("warning: {}: {}", warning.code, warning.message)));
        answer
    }

    fn write_patch(&self, arguments: &str, until: &Until) -> Answer {
        let (batch, warnings, outcome) = self.apply_document(Dialect::LinePatch, arguments, until);
        let shown = shown(&batch, outcome.as_ref());
        let told = answer(&shown, tool_for);
        let result = InvokeResult {
            successful: told.success,
            result: told.batch_id.map(|batch_id| PatchResult {
                batch_id,
                batch_key: batch.key.as_deref(),
                batch_label: batch.label.as_deref(),
                files: told.files,
                diff: &told.diff,
            }),
            errors: told.errors,
            warnings: warnings
                .iter()
                .map(|warning| WarningAnswer { code: &warning.code, message: &warning.message })
                .collect(),
        };
        serialized(&result, outcome.is_err())
    }

    fn create_file(&self, arguments: &str, until: &Until) -> Answer {
        let (batch, _, outcome) = self.apply_document(Dialect::CreateFile, arguments, until);
        let path = batch.files.first().map_or("", |file| file.target.as_str());
        let result = match &outcome {
            Ok(applied) => match applied.report.files.first() {
                Some(file) => Created::done(file),
                None => Created::refused(path, &[]),
            },
            Err(refusal) => Created::refused(path, &refusal.failures),
        };
        serialized(&result, outcome.is_err())
    }

    fn search(&self, arguments: &str, show: Show, until: &Until) -> Answer {
        let found = look::search(arguments)
            .and_then(|call| search::search(&self.workspace, &*self.policy()?, &call, show, until));
        looked(found.map_err(|failure| self.told(failure)), |found| vec![found.text()])
    }

    /// Carries out a call of a tool of the prepare-first family.
    fn prepared_call(&self, number: CallNumber, tool: &str, arguments: &str, until: &Until) -> Answer {
        match prepare::parse(tool, arguments) {
            Ok(Call::Prepare { patch, existing }) => self.prepare(number, patch, existing),
            Ok(Call::Apply { hunk }) => self.apply_prepared(number, hunk, until),
            Ok(Call::Overwrite { patch }) => {
                let batch = Batch { files: vec![patch], ..Batch::default() };
                let outcome = self.apply(None, &batch, until, &mut |_| Ok(()));
                batch_answer(&batch, outcome.as_ref())
            }
            Err(failure) => refused(&[failure]),
        }
    }

    fn prepare(&self, number: CallNumber, patch: FilePatch, existing: Option<FilePatchId>) -> Answer {
        let batch = Arc::new(Batch { files: vec![patch], ..Batch::default() });
        match self.plan(number, &batch, existing) {
            Ok((report, preview, phase)) => planned_answer(&batch, &report, &preview, phase),
            Err(refusal) => refused(&self.told(refusal).failures),
        }
    }

    fn plan(
        &self,
        number: CallNumber,
        batch: &Arc<Batch>,
        existing: Option<FilePatchId>,
    ) -> Result<(Report, Preview, Phase), Refusal> {
        let Some(FileEdit::AnchorEdit(edit)) = batch.files.first().map(|file| &file.edit) else {
            return Err(nothing_planned().into());
        };
        let policy = self.policy()?;
        policy.may_write()?;
        let now = self.clock.now();
        let slot = self.hunks().place(existing, self.member(), edit.place.kind(), FilePatchId(mint()), now)?;
        let (report, preview) = plan_only(&self.workspace, batch, &policy, |plan| {
            let file = plan.files.first()?;
            let preview = preview(edit, file, DIFF_BYTES)?;
            let report = Report {
                outcome: Outcome::Applied,
                files: vec![file.report(&file.content())],
                failures: Vec::new(),
                warnings: Vec::new(),
                diff: preview.diff.clone().unwrap_or_default(),
                diff_omitted: preview.diff.is_none(),
            };
            Some((report, preview))
        })
        .map_err(|refusal| in_words(refusal, None, batch))?
        .ok_or_else(nothing_planned)?;
        let pinned = report.files.first().map(Pinned::of).ok_or_else(nothing_planned)?;
        let phase = Phase::Planned { hunk: slot.hunk.id, expires: slot.hunk.expires };
        let plan = Plan { batch: Arc::clone(batch), pinned, bytes: edit.content.len() };
        self.hunks().keep(slot, plan, number, now)?;
        Ok((report, preview, phase))
    }

    fn apply_prepared(&self, number: CallNumber, id: FilePatchId, until: &Until) -> Answer {
        let in_use = match InUse::take(&self.hunks, id, self.member(), number, self.clock.now()) {
            Ok(in_use) => in_use,
            Err(failure) => return refused(&[failure]),
        };
        let plan = &in_use.plan;
        let mut seen = None;
        let applied = self.apply(None, &plan.batch, until, &mut |proposal| {
            let (file, edit) = proposal.plan.files.first().zip(plan.batch.files.first()).ok_or_else(nothing_planned)?;
            if Pinned::of(&file.report(&file.content())) != plan.pinned {
                return Err(changed_since(plan, id));
            }
            if let FileEdit::AnchorEdit(edit) = &edit.edit {
                seen = preview(edit, file, DIFF_BYTES);
            }
            Ok(())
        });
        match (applied, seen) {
            (Ok(mut applied), Some(preview)) => {
                // The plan's id is the file patch's.
                applied.ids.iter_mut().for_each(|ids| ids.file = id);
                let answer = applied_answer(&plan.batch, &applied, &preview, id);
                in_use.applied();
                answer
            }
            (outcome, _) => batch_answer(&plan.batch, outcome.map_err(|refusal| stale(refusal, plan, id)).as_ref()),
        }
    }
}

/// A refusal in the words of the call; the tools that prepare edits have no dialect.
fn in_words(mut refusal: Refusal, dialect: Option<Dialect>, batch: &Batch) -> Refusal {
    dialect_terms::in_words_of(dialect.unwrap_or(Dialect::Chat), batch, &mut refusal.failures);
    refusal
}

/// What a refusal comes to if the file is not the one that the edit was planned for.
fn stale(refusal: Refusal, plan: &Plan, id: FilePatchId) -> Refusal {
    let is_other = |failure: &Failure| failure.current_sha256.is_some_and(|now| !plan.pinned.is_for(now));
    if refusal.failures.iter().any(is_other) { changed_since(plan, id).into() } else { refusal }
}

fn changed_since(plan: &Plan, id: FilePatchId) -> Failure {
    let message = format!("the file is not as it was when the edit {id} was prepared, and nothing was written");
    let path = plan.batch.files.first().map(|file| file.target.as_str().to_owned());
    let failure = Failure::new(Reason::FileChanged, message)
        .hint("prepare the edit again, with existing_hunk_id to take this one's place, look at it, then apply it");
    Failure { path, ..failure }
}

fn nothing_planned() -> Failure {
    Failure::new(Reason::Internal, "the edit came to no plan")
        .hint("this is a defect of the program; nothing was changed")
}

/// The tool that takes a document of a dialect.
fn tool_for(dialect: &str) -> Option<String> {
    let tool = match dialect.parse() {
        Ok(Dialect::LinePatch) => "workspace_write_patch",
        Ok(Dialect::SearchPatch) => "patch",
        Ok(Dialect::CreateFile) => "workspace_create_file",
        _ => return None,
    };
    Some(tool.to_owned())
}

/// The envelope of `workspace_write_patch` (TUL-002 9).
#[derive(Serialize)]
struct InvokeResult<'a> {
    successful: bool,
    result: Option<PatchResult<'a>>,
    errors: Vec<ErrorAnswer<'a>>,
    warnings: Vec<WarningAnswer<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PatchResult<'a> {
    batch_id: String,
    batch_key: Option<&'a str>,
    batch_label: Option<&'a str>,
    files: Vec<FileAnswer<'a>>,
    diff: &'a str,
}

#[derive(Serialize)]
struct WarningAnswer<'a> {
    code: &'a str,
    message: &'a str,
}

#[derive(Serialize)]
struct Refused<'a> {
    success: bool,
    state: &'static str,
    errors: Vec<ErrorAnswer<'a>>,
}

fn shown<'a>(batch: &'a Batch, outcome: Result<&'a Applied, &'a Refusal>) -> Shown<'a> {
    Shown {
        batch,
        dry_run: false,
        paths: PathStyle::InRoot,
        stored: outcome.ok().map(|done| Stored { id: done.batch, state: BatchState::Applied, ids: &done.ids }),
        outcome: outcome.map(|done| Some(&done.report)),
        warnings: &[],
    }
}

fn batch_answer(batch: &Batch, outcome: Result<&Applied, &Refusal>) -> Answer {
    let mut told = serialized(&answer(&shown(batch, outcome), tool_for), outcome.is_err());
    if outcome.is_ok_and(|done| done.report.diff_omitted) {
        told.text.push(format!("the diff has more than {DIFF_BYTES} bytes and is left out"));
    }
    told
}

fn planned_answer(batch: &Batch, report: &Report, preview: &Preview, phase: Phase) -> Answer {
    let shown = Shown {
        batch,
        dry_run: true,
        paths: PathStyle::InRoot,
        stored: None,
        outcome: Ok(Some(report)),
        warnings: &[],
    };
    hunk_answer(&shown, preview, phase)
}

fn applied_answer(batch: &Batch, applied: &Applied, preview: &Preview, hunk: FilePatchId) -> Answer {
    hunk_answer(&shown(batch, Ok(applied)), preview, Phase::Applied { hunk })
}

/// What is told of a prepared edit, before it is applied and after.
fn hunk_answer(shown: &Shown<'_>, preview: &Preview, phase: Phase) -> Answer {
    let mut told = serialized(&answer(shown, tool_for), false);
    let (hunk, expires) = match phase {
        Phase::Planned { hunk, expires } => (hunk, Some(expires.0)),
        Phase::Applied { hunk } => (hunk, None),
    };
    if let Some(object) = told.structured.as_object_mut() {
        object.insert("hunkId".to_owned(), hunk.to_string().into());
        if let Some(expires) = expires {
            object.insert("expiresAtMs".to_owned(), expires.into());
        }
    }
    // A summary is texts and numbers: there is nothing in it that YAML could refuse.
    let yaml = to_yaml(preview, phase).unwrap_or_default();
    let diff = preview.diff.clone().unwrap_or_else(|| format!("the diff has more than {DIFF_BYTES} bytes"));
    Answer { text: vec![yaml, diff], ..told }
}

/// The answer of a tool that only looks.
fn looked<T: Serialize>(found: Result<T, Refusal>, text: impl FnOnce(&T) -> Vec<String>) -> Answer {
    match found {
        Ok(found) => Answer { text: text(&found), ..serialized(&found, false) },
        Err(refusal) => refused(&refusal.failures),
    }
}

/// The answer of a call that came to nothing, in the form of its tool's answers.
pub(super) fn broken_off(tool: &str, failure: Failure) -> Answer {
    let failures = [failure];
    match tool {
        "workspace_write_patch" => {
            let errors = errors(&failures, tool_for);
            serialized(&InvokeResult { successful: false, result: None, errors, warnings: Vec::new() }, true)
        }
        "workspace_create_file" => serialized(&Created::refused("", &failures), true),
        _ => refused(&failures),
    }
}

fn refused(failures: &[Failure]) -> Answer {
    serialized(&Refused { success: false, state: "FAILED", errors: errors(failures, tool_for) }, true)
}

fn serialized(object: &impl Serialize, is_error: bool) -> Answer {
    // Answers are texts and numbers under fixed names: there is nothing in them that JSON could refuse.
    let structured = serde_json::to_value(object).unwrap_or_default();
    Answer { structured, text: vec![serde_json::to_string(object).unwrap_or_default()], is_error }
}

#[expect(clippy::disallowed_methods, reason = "the edge of the program mints ids")]
fn mint() -> Uuid {
    Uuid::now_v7()
}
