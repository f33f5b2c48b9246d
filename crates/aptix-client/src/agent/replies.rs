//! What the workstation replies to the server's questions: files as they are, and what would become of a batch, under the
//! policy of this moment. Nothing is written.

use std::path::PathBuf;

use aptix_engine::preview::edit_evidence;
use aptix_model::batch::{Batch, FileEdit, Origin};
use aptix_model::failure::Failure;
use aptix_model::id::WorkspaceId;
use aptix_model::limits::{EVIDENCE_BYTES, PLACES_BYTES, REPORT_DIFF_BYTES};
use aptix_model::path::{DocPath, WorkspacePath};
use aptix_model::plan::{Place, Plan, Planned};
use aptix_model::presence::QuestionKind;
use aptix_model::preview::EditEvidence;
use aptix_model::question::{Located, Question, Reply};
use aptix_model::report::{FileReport, Report, Warning};
use aptix_model::tools::roots::Roots;
use aptix_model::wire::question::Answer;

use super::report::refusal;
use super::tool_replies;
use crate::apply::proposal::{Decision, Proposal};
use crate::apply::{ApplyOptions, Mode, apply};
use crate::connection::question::{Answering, Wanted};
use crate::live::{list, read, search};
use crate::policy::Policy;
use crate::policy::files::PolicyFiles;
use crate::tools::reader::{Reader, roots};
use crate::workspace::roots::workspace::Workspace;

/// Answers from the disk.
#[derive(Clone, Default, Debug)]
pub struct FromDisk {
    /// The workspace at the server, for logs.
    pub workspace: Option<WorkspaceId>,
    /// The directories of the roots, in the order of the roots, as the user wrote them and absolute: a model may write paths that
    /// begin with one.
    pub directories: Vec<PathBuf>,
}

impl Answering for FromDisk {
    fn kinds(&self) -> &[QuestionKind] {
        &[
            QuestionKind::Read,
            QuestionKind::Stat,
            QuestionKind::List,
            QuestionKind::Search,
            QuestionKind::Preview,
            QuestionKind::Prepare,
            QuestionKind::Tool,
            QuestionKind::Paths,
        ]
    }

    fn answer(&self, local: &Workspace, policies: &PolicyFiles, question: &Question, wanted: &Wanted) -> Answer {
        let reply = self.reply(local, policies, question, &|| wanted.is_over());
        Answer(without_places(local, policies, reply).into())
    }
}

impl FromDisk {
    fn reply(
        &self,
        local: &Workspace,
        policies: &PolicyFiles,
        question: &Question,
        is_over: &dyn Fn() -> bool,
    ) -> Reply {
        let policy = match policies.read(local) {
            Ok(policy) => policy,
            Err(error) => return Reply::Failed(Box::new(error.failure())),
        };
        let replied = match question {
            Question::Read(files) => read::read(local, &policy, files, is_over).map(Reply::Read),
            Question::Stat(files) => read::stat(local, &policy, files, is_over).map(Reply::Stat),
            Question::List(call) => list::list(local, &policy, call, is_over).map(Reply::List),
            Question::Search(call) => search::search(local, &policy, call, is_over).map(Reply::Search),
            Question::Preview(batch) => {
                let planned = plan(local, &policy, (batch, &Origin::default()), is_over);
                Ok(Reply::Preview(planned.map_or_else(|refused| refused, |plan| plan.report)))
            }
            Question::Prepare(batch, origin) => {
                let planned = plan(local, &policy, (batch, origin), is_over);
                Ok(Reply::Prepare(Box::new(planned.map_or_else(Planned::Refused, Planned::Plan))))
            }
            Question::Paths(paths) => {
                let roots = self.roots(local);
                Ok(Reply::Paths(paths.iter().map(|path| located(&roots, path)).collect()))
            }
            Question::Tool(call) => {
                let roots = self.roots(local);
                let reader = Reader { workspace: local, policies, is_over };
                Ok(Reply::Tool(tool_replies::reply(reader, &roots, self.workspace.as_ref(), call)))
            }
        };
        replied.unwrap_or_else(|failure| Reply::Failed(Box::new(failure)))
    }

    fn roots(&self, local: &Workspace) -> Roots {
        roots(local, self.directories.iter().map(PathBuf::as_path))
    }
}

/// The file that an absolute path leads to; `None` for one outside of the roots, and for a root itself.
fn located(roots: &Roots, path: &str) -> Option<Located> {
    roots.locate(path).filter(|found| WorkspacePath::new(&found.path).is_ok() && DocPath::new(&found.doc_path).is_ok())
}

/// What a batch would do if it were applied now, and a person agreed where one has to; else the report that says why it would do
/// nothing.
fn plan(
    local: &Workspace,
    policy: &Policy,
    (batch, origin): (&Batch, &Origin),
    is_over: &dyn Fn() -> bool,
) -> Result<Plan, Report> {
    let (mut asked, mut places, mut evidence) = (Vec::new(), Vec::new(), Vec::new());
    let mode = Mode::Preview { is_over };
    let options = ApplyOptions { origin, diff_bytes: REPORT_DIFF_BYTES, ..ApplyOptions::new(policy, mode) };
    let planned = apply(local, batch, options, &mut |proposal: &Proposal<'_>| {
        asked = proposal.unanswered();
        places = proposal.plan.files.iter().map(|file| file.places(PLACES_BYTES)).collect();
        evidence = evidence_of(proposal);
        Decision::Apply
    });
    let mut report = planned.map_err(|refused| refusal(refused.failures))?;
    report.warnings.extend(asked.into_iter().map(needs_agreement));
    let shown = |(places, file): (Vec<Place>, &FileReport)| if file.withheld.is_none() { places } else { Vec::new() };
    let mut places: Vec<_> = places.into_iter().zip(&report.files).map(shown).collect();
    if places.iter().flatten().map(Place::size).sum::<usize>() > PLACES_BYTES {
        places.iter_mut().for_each(Vec::clear);
    }
    for (seen, file) in evidence.iter_mut().zip(&report.files) {
        seen.take_if(|_| file.withheld.is_some());
    }
    if evidence.iter().flatten().map(EditEvidence::size).sum::<usize>() > EVIDENCE_BYTES {
        evidence.clear();
    }
    Ok(Plan { report, places, evidence })
}

/// What the author of each edit at an anchor is shown of its place.
fn evidence_of(proposal: &Proposal<'_>) -> Vec<Option<EditEvidence>> {
    let edits = proposal.plan.files.iter().zip(&proposal.batch.files);
    let shown = edits.map(|(file, patch)| match &patch.edit {
        FileEdit::AnchorEdit(edit) => edit_evidence(edit, file),
        _ => None,
    });
    shown.collect()
}

/// The warning about a file whose change a person has to agree to.
fn needs_agreement(failure: Failure) -> Warning {
    let path = failure.path.unwrap_or_default();
    Warning { code: failure.reason.code().to_owned(), message: format!("{path}: {}", failure.message), line: None }
}

/// Without paths of this machine outside of the roots.
fn without_places(local: &Workspace, policies: &PolicyFiles, mut reply: Reply) -> Reply {
    let places = policies.private_places(local);
    let name_in = |failure: &mut Failure| places.name_in(std::slice::from_mut(failure));
    match &mut reply {
        Reply::Failed(failure) => name_in(failure),
        Reply::Read(files) => files.iter_mut().filter_map(|file| file.as_mut().err()).for_each(name_in),
        Reply::Stat(files) => files.iter_mut().filter_map(|file| file.as_mut().err()).for_each(name_in),
        Reply::Preview(report) => places.name_in_report(report),
        Reply::Prepare(planned) => match &mut **planned {
            Planned::Plan(Plan { report, .. }) | Planned::Refused(report) => places.name_in_report(report),
        },
        // A tool's refusal is without such paths.
        Reply::List(_) | Reply::Search(_) | Reply::Tool(_) | Reply::Paths(_) => {}
    }
    reply
}
