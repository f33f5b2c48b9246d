//! Answers calls that only read, under the policy for their caller. It blocks.

use std::path::Path;

use aptix_model::documents::PartialDocument;
use aptix_model::failure::Failure;
use aptix_model::live::ListFiles;
use aptix_model::path::WorkspacePath;
use aptix_model::reason::Detail;
use aptix_model::tools::list_directory::Listed;
use aptix_model::tools::look::{Look, MOST_LINES, ReadFile, Search, View};
use aptix_model::tools::result::tool_result::{ToolResult, of_record, serialized};
use aptix_model::tools::roots::Roots;
use serde::Serialize;

use super::past_batches::PastBatches;
use super::search::Show;
use super::{read, search};
use crate::apply::{Refusal, refuse_document};
use crate::live::IsOver;
use crate::live::list::{Children, list, list_children};
use crate::policy::Policy;
use crate::policy::files::PolicyFiles;
use crate::workspace::roots::workspace::Workspace;

/// The roots of a workspace by the absolute paths that calls may begin with: their own, and for each, in order, the directory as
/// the user wrote it, where that is known.
pub(crate) fn roots<'d>(workspace: &Workspace, directories: impl IntoIterator<Item = &'d Path>) -> Roots {
    let mut directories = directories.into_iter();
    workspace.roots().iter().fold(Roots::default(), |roots, root| {
        let known_as = [Some(root.path()), directories.next()];
        roots.with(root.name(), known_as.into_iter().flatten().map(|path| path.to_string_lossy().into_owned()))
    })
}

/// Answers calls for one caller.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a> {
    pub(crate) workspace: &'a Workspace,
    pub(crate) policies: &'a PolicyFiles,
    pub(crate) is_over: IsOver<'a>,
}

impl Reader<'_> {
    /// The answer of a call.
    ///
    /// # Errors
    /// Why there is none, without paths of this machine outside of the roots.
    pub(crate) fn answer(&self, look: &Look) -> Result<ToolResult, Failure> {
        let answer = self.policy().and_then(|policy| self.looked(&policy, look));
        answer.map_err(|mut failure| {
            self.policies.private_places(self.workspace).name_in(std::slice::from_mut(&mut failure));
            failure
        })
    }

    /// The refusal of arguments that do not have the shape of the tool's.
    pub(crate) fn refuse(&self, document: &PartialDocument) -> Refusal {
        let mut refusal = match self.policy() {
            Ok(policy) => refuse_document(self.workspace, document, &policy),
            Err(failure) => failure.into(),
        };
        self.policies.private_places(self.workspace).name_in(&mut refusal.failures);
        refusal
    }

    fn policy(&self) -> Result<std::sync::Arc<Policy>, Failure> {
        self.policies.read(self.workspace).map_err(|error| error.failure())
    }

    fn looked(&self, policy: &Policy, look: &Look) -> Result<ToolResult, Failure> {
        let past = PastBatches { workspace: self.workspace, policy, is_over: self.is_over };
        match look {
            Look::Read(call) => {
                let lines = read::read(self.workspace, policy, call)?;
                Ok(found(&lines, vec![lines.head(), lines.text.clone()]))
            }
            Look::View(call) => self.view(policy, call),
            Look::List(call) => {
                let Children { directories, files } = list_children(self.workspace, policy, call, self.is_over)?;
                let listed = Listed { directories, ..Listed::from(files) };
                Ok(found(&listed, vec![listed.text()]))
            }
            Look::History { most, path } => {
                let batches = past.list(*most, path.as_ref().map(WorkspacePath::as_str))?;
                Ok(found(&batches, vec![batches.text()]))
            }
            Look::Show { id } => {
                let mut shown = past.find(id)?;
                self.policies.private_places(self.workspace).name_in_report(&mut shown.report);
                Ok(of_record(&past.view(&shown).result()))
            }
            Look::FindFiles(call) => self.search(policy, call, Show::Files),
            Look::FindLines(call) => self.search(policy, call, Show::Lines),
        }
    }

    /// The answer of the command `view`: a file with line numbers, or the files below a directory.
    fn view(&self, policy: &Policy, call: &View) -> Result<ToolResult, Failure> {
        let Some(path) = &call.path else { return self.listed(policy, &ListFiles::default()) };
        let (start_line, end_line) = call.range.unwrap_or((1, None));
        let file = ReadFile { path: path.clone(), start_line, end_line, max_lines: MOST_LINES };
        match read::read(self.workspace, policy, &file) {
            Ok(lines) => Ok(found(&lines, vec![lines.numbered()])),
            Err(failure) if failure.detail == Some(Detail::NotRegular) && call.range.is_none() => {
                self.listed(policy, &ListFiles { directory: Some(path.clone()), ..ListFiles::default() })
            }
            Err(failure) => Err(failure),
        }
    }

    fn listed(&self, policy: &Policy, call: &ListFiles) -> Result<ToolResult, Failure> {
        let listed = list(self.workspace, policy, call, self.is_over).map(Listed::from)?;
        Ok(found(&listed, vec![listed.text()]))
    }

    fn search(&self, policy: &Policy, call: &Search, show: Show) -> Result<ToolResult, Failure> {
        let matches = search::search(self.workspace, policy, call, show, self.is_over)?;
        Ok(found(&matches, vec![matches.text()]))
    }
}

/// What was found, with its texts.
fn found(object: &impl Serialize, text: Vec<String>) -> ToolResult {
    ToolResult { text, ..serialized(object, false) }
}
