//! Which role may call which method. A method without a row does not compile.

use aptix_model::token::Role::{self, Agent, Operator, Orchestrator, Reader, Reviewer};
use aptix_model::wire::method::Method;

/// The roles that may call a method.
pub(super) const fn roles(method: Method) -> &'static [Role] {
    match method {
        Method::GetServerStatus
        | Method::CreateToken
        | Method::ListTokens
        | Method::RevokeToken
        | Method::CreateWorkspace
        | Method::DeleteWorkspace
        | Method::RetainWorkspace => &[Operator],
        // No token gives them: a backup has every file and batch in it, and only servers ask each other.
        Method::Backup | Method::AskAgent => &[],
        Method::GetWorkspace | Method::ListWorkspaces => &[Orchestrator, Agent, Reviewer, Reader, Operator],
        // The agent reads batches that it was sent without their content, and compares the server's files with its own.
        Method::GetBatch | Method::StatFiles | Method::ListFiles => &[Orchestrator, Agent, Reviewer, Reader],
        Method::GetChange
        | Method::ListBatches
        | Method::WatchBatch
        | Method::WatchWorkspace
        | Method::GetSession
        | Method::ReadFile
        | Method::ReadFiles
        | Method::SearchFiles
        | Method::ListTools
        | Method::GetGuidance => &[Orchestrator, Reviewer, Reader],
        Method::SubmitBatch | Method::PrepareBatch | Method::ApplyPrepared | Method::CallTool => &[Orchestrator],
        Method::CancelBatch | Method::RevertBatch | Method::SetSessionMode => &[Orchestrator, Reviewer],
        Method::ApproveBatch | Method::RejectBatch => &[Reviewer],
        Method::Serve | Method::ReportBatch | Method::ReportLocalBatch => &[Agent],
        Method::FindMissingBlobs | Method::StatUpload | Method::UploadBlob => &[Orchestrator, Agent],
        Method::DownloadBlob => &[Orchestrator, Agent, Reviewer, Reader],
    }
}

/// Whether a method is for the owner of the data directory alone.
pub(super) fn is_for_owner(method: Method) -> bool {
    matches!(method, Method::Backup)
}

/// Whether a method is for the other servers on the store alone.
pub(super) const fn is_for_members(method: Method) -> bool {
    matches!(method, Method::AskAgent)
}

/// Whether a method is for operators alone: without a token nobody calls it but the owner of the data directory.
pub(super) fn is_administration(method: Method) -> bool {
    roles(method) == [Operator]
}
