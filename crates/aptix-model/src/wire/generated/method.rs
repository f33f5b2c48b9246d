/// A method of the protocol.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Method {
    /// `/aptix.v1.BatchService/ApplyPrepared`.
    ApplyPrepared,
    /// `/aptix.v1.BatchService/ApproveBatch`.
    ApproveBatch,
    /// `/aptix.v1.FleetService/AskAgent`.
    AskAgent,
    /// `/aptix.v1.AdminService/Backup`.
    Backup,
    /// `/aptix.v1.ToolService/CallTool`.
    CallTool,
    /// `/aptix.v1.BatchService/CancelBatch`.
    CancelBatch,
    /// `/aptix.v1.AdminService/CreateToken`.
    CreateToken,
    /// `/aptix.v1.AdminService/CreateWorkspace`.
    CreateWorkspace,
    /// `/aptix.v1.AdminService/DeleteWorkspace`.
    DeleteWorkspace,
    /// `/aptix.v1.FileService/DownloadBlob`.
    DownloadBlob,
    /// `/aptix.v1.FileService/FindMissingBlobs`.
    FindMissingBlobs,
    /// `/aptix.v1.BatchService/GetBatch`.
    GetBatch,
    /// `/aptix.v1.BatchService/GetChange`.
    GetChange,
    /// `/aptix.v1.ToolService/GetGuidance`.
    GetGuidance,
    /// `/aptix.v1.AdminService/GetServerStatus`.
    GetServerStatus,
    /// `/aptix.v1.SessionService/GetSession`.
    GetSession,
    /// `/aptix.v1.WorkspaceService/GetWorkspace`.
    GetWorkspace,
    /// `/aptix.v1.BatchService/ListBatches`.
    ListBatches,
    /// `/aptix.v1.FileService/ListFiles`.
    ListFiles,
    /// `/aptix.v1.AdminService/ListTokens`.
    ListTokens,
    /// `/aptix.v1.ToolService/ListTools`.
    ListTools,
    /// `/aptix.v1.WorkspaceService/ListWorkspaces`.
    ListWorkspaces,
    /// `/aptix.v1.BatchService/PrepareBatch`.
    PrepareBatch,
    /// `/aptix.v1.FileService/ReadFile`.
    ReadFile,
    /// `/aptix.v1.FileService/ReadFiles`.
    ReadFiles,
    /// `/aptix.v1.BatchService/RejectBatch`.
    RejectBatch,
    /// `/aptix.v1.AgentService/ReportBatch`.
    ReportBatch,
    /// `/aptix.v1.AgentService/ReportLocalBatch`.
    ReportLocalBatch,
    /// `/aptix.v1.AdminService/RetainWorkspace`.
    RetainWorkspace,
    /// `/aptix.v1.BatchService/RevertBatch`.
    RevertBatch,
    /// `/aptix.v1.AdminService/RevokeToken`.
    RevokeToken,
    /// `/aptix.v1.FileService/SearchFiles`.
    SearchFiles,
    /// `/aptix.v1.AgentService/Serve`.
    Serve,
    /// `/aptix.v1.SessionService/SetSessionMode`.
    SetSessionMode,
    /// `/aptix.v1.FileService/StatFiles`.
    StatFiles,
    /// `/aptix.v1.FileService/StatUpload`.
    StatUpload,
    /// `/aptix.v1.BatchService/SubmitBatch`.
    SubmitBatch,
    /// `/aptix.v1.FileService/UploadBlob`.
    UploadBlob,
    /// `/aptix.v1.BatchService/WatchBatch`.
    WatchBatch,
    /// `/aptix.v1.WorkspaceService/WatchWorkspace`.
    WatchWorkspace,
}

impl Method {
    /// Every method, by name.
    pub const ALL: &[Self] = &[
        Self::ApplyPrepared,
        Self::ApproveBatch,
        Self::AskAgent,
        Self::Backup,
        Self::CallTool,
        Self::CancelBatch,
        Self::CreateToken,
        Self::CreateWorkspace,
        Self::DeleteWorkspace,
        Self::DownloadBlob,
        Self::FindMissingBlobs,
        Self::GetBatch,
        Self::GetChange,
        Self::GetGuidance,
        Self::GetServerStatus,
        Self::GetSession,
        Self::GetWorkspace,
        Self::ListBatches,
        Self::ListFiles,
        Self::ListTokens,
        Self::ListTools,
        Self::ListWorkspaces,
        Self::PrepareBatch,
        Self::ReadFile,
        Self::ReadFiles,
        Self::RejectBatch,
        Self::ReportBatch,
        Self::ReportLocalBatch,
        Self::RetainWorkspace,
        Self::RevertBatch,
        Self::RevokeToken,
        Self::SearchFiles,
        Self::Serve,
        Self::SetSessionMode,
        Self::StatFiles,
        Self::StatUpload,
        Self::SubmitBatch,
        Self::UploadBlob,
        Self::WatchBatch,
        Self::WatchWorkspace,
    ];

    /// Where it is called.
    #[must_use]
    pub const fn path(self) -> &'static str {
        match self {
            Self::ApplyPrepared => "/aptix.v1.BatchService/ApplyPrepared",
            Self::ApproveBatch => "/aptix.v1.BatchService/ApproveBatch",
            Self::AskAgent => "/aptix.v1.FleetService/AskAgent",
            Self::Backup => "/aptix.v1.AdminService/Backup",
            Self::CallTool => "/aptix.v1.ToolService/CallTool",
            Self::CancelBatch => "/aptix.v1.BatchService/CancelBatch",
            Self::CreateToken => "/aptix.v1.AdminService/CreateToken",
            Self::CreateWorkspace => "/aptix.v1.AdminService/CreateWorkspace",
            Self::DeleteWorkspace => "/aptix.v1.AdminService/DeleteWorkspace",
            Self::DownloadBlob => "/aptix.v1.FileService/DownloadBlob",
            Self::FindMissingBlobs => "/aptix.v1.FileService/FindMissingBlobs",
            Self::GetBatch => "/aptix.v1.BatchService/GetBatch",
            Self::GetChange => "/aptix.v1.BatchService/GetChange",
            Self::GetGuidance => "/aptix.v1.ToolService/GetGuidance",
            Self::GetServerStatus => "/aptix.v1.AdminService/GetServerStatus",
            Self::GetSession => "/aptix.v1.SessionService/GetSession",
            Self::GetWorkspace => "/aptix.v1.WorkspaceService/GetWorkspace",
            Self::ListBatches => "/aptix.v1.BatchService/ListBatches",
            Self::ListFiles => "/aptix.v1.FileService/ListFiles",
            Self::ListTokens => "/aptix.v1.AdminService/ListTokens",
            Self::ListTools => "/aptix.v1.ToolService/ListTools",
            Self::ListWorkspaces => "/aptix.v1.WorkspaceService/ListWorkspaces",
            Self::PrepareBatch => "/aptix.v1.BatchService/PrepareBatch",
            Self::ReadFile => "/aptix.v1.FileService/ReadFile",
            Self::ReadFiles => "/aptix.v1.FileService/ReadFiles",
            Self::RejectBatch => "/aptix.v1.BatchService/RejectBatch",
            Self::ReportBatch => "/aptix.v1.AgentService/ReportBatch",
            Self::ReportLocalBatch => "/aptix.v1.AgentService/ReportLocalBatch",
            Self::RetainWorkspace => "/aptix.v1.AdminService/RetainWorkspace",
            Self::RevertBatch => "/aptix.v1.BatchService/RevertBatch",
            Self::RevokeToken => "/aptix.v1.AdminService/RevokeToken",
            Self::SearchFiles => "/aptix.v1.FileService/SearchFiles",
            Self::Serve => "/aptix.v1.AgentService/Serve",
            Self::SetSessionMode => "/aptix.v1.SessionService/SetSessionMode",
            Self::StatFiles => "/aptix.v1.FileService/StatFiles",
            Self::StatUpload => "/aptix.v1.FileService/StatUpload",
            Self::SubmitBatch => "/aptix.v1.BatchService/SubmitBatch",
            Self::UploadBlob => "/aptix.v1.FileService/UploadBlob",
            Self::WatchBatch => "/aptix.v1.BatchService/WatchBatch",
            Self::WatchWorkspace => "/aptix.v1.WorkspaceService/WatchWorkspace",
        }
    }

    /// The method that is called there; `None` if the protocol has none.
    #[must_use]
    pub fn from_path(path: &str) -> Option<Self> {
        match path {
            "/aptix.v1.BatchService/ApplyPrepared" => Some(Self::ApplyPrepared),
            "/aptix.v1.BatchService/ApproveBatch" => Some(Self::ApproveBatch),
            "/aptix.v1.FleetService/AskAgent" => Some(Self::AskAgent),
            "/aptix.v1.AdminService/Backup" => Some(Self::Backup),
            "/aptix.v1.ToolService/CallTool" => Some(Self::CallTool),
            "/aptix.v1.BatchService/CancelBatch" => Some(Self::CancelBatch),
            "/aptix.v1.AdminService/CreateToken" => Some(Self::CreateToken),
            "/aptix.v1.AdminService/CreateWorkspace" => Some(Self::CreateWorkspace),
            "/aptix.v1.AdminService/DeleteWorkspace" => Some(Self::DeleteWorkspace),
            "/aptix.v1.FileService/DownloadBlob" => Some(Self::DownloadBlob),
            "/aptix.v1.FileService/FindMissingBlobs" => Some(Self::FindMissingBlobs),
            "/aptix.v1.BatchService/GetBatch" => Some(Self::GetBatch),
            "/aptix.v1.BatchService/GetChange" => Some(Self::GetChange),
            "/aptix.v1.ToolService/GetGuidance" => Some(Self::GetGuidance),
            "/aptix.v1.AdminService/GetServerStatus" => Some(Self::GetServerStatus),
            "/aptix.v1.SessionService/GetSession" => Some(Self::GetSession),
            "/aptix.v1.WorkspaceService/GetWorkspace" => Some(Self::GetWorkspace),
            "/aptix.v1.BatchService/ListBatches" => Some(Self::ListBatches),
            "/aptix.v1.FileService/ListFiles" => Some(Self::ListFiles),
            "/aptix.v1.AdminService/ListTokens" => Some(Self::ListTokens),
            "/aptix.v1.ToolService/ListTools" => Some(Self::ListTools),
            "/aptix.v1.WorkspaceService/ListWorkspaces" => Some(Self::ListWorkspaces),
            "/aptix.v1.BatchService/PrepareBatch" => Some(Self::PrepareBatch),
            "/aptix.v1.FileService/ReadFile" => Some(Self::ReadFile),
            "/aptix.v1.FileService/ReadFiles" => Some(Self::ReadFiles),
            "/aptix.v1.BatchService/RejectBatch" => Some(Self::RejectBatch),
            "/aptix.v1.AgentService/ReportBatch" => Some(Self::ReportBatch),
            "/aptix.v1.AgentService/ReportLocalBatch" => Some(Self::ReportLocalBatch),
            "/aptix.v1.AdminService/RetainWorkspace" => Some(Self::RetainWorkspace),
            "/aptix.v1.BatchService/RevertBatch" => Some(Self::RevertBatch),
            "/aptix.v1.AdminService/RevokeToken" => Some(Self::RevokeToken),
            "/aptix.v1.FileService/SearchFiles" => Some(Self::SearchFiles),
            "/aptix.v1.AgentService/Serve" => Some(Self::Serve),
            "/aptix.v1.SessionService/SetSessionMode" => Some(Self::SetSessionMode),
            "/aptix.v1.FileService/StatFiles" => Some(Self::StatFiles),
            "/aptix.v1.FileService/StatUpload" => Some(Self::StatUpload),
            "/aptix.v1.BatchService/SubmitBatch" => Some(Self::SubmitBatch),
            "/aptix.v1.FileService/UploadBlob" => Some(Self::UploadBlob),
            "/aptix.v1.BatchService/WatchBatch" => Some(Self::WatchBatch),
            "/aptix.v1.WorkspaceService/WatchWorkspace" => Some(Self::WatchWorkspace),
            _ => None,
        }
    }

    /// The numbers of the fields that lead to the id of the workspace in its first message; `None` if that names none.
    #[must_use]
    pub const fn workspace(self) -> Option<&'static [u32]> {
        match self {
            Self::ApplyPrepared => Some(&[1]),
            Self::ApproveBatch => Some(&[1]),
            Self::AskAgent => Some(&[1]),
            Self::Backup => None,
            Self::CallTool => Some(&[1]),
            Self::CancelBatch => Some(&[1]),
            Self::CreateToken => Some(&[3]),
            Self::CreateWorkspace => Some(&[1]),
            Self::DeleteWorkspace => Some(&[1]),
            Self::DownloadBlob => Some(&[1]),
            Self::FindMissingBlobs => Some(&[1]),
            Self::GetBatch => Some(&[1]),
            Self::GetChange => Some(&[1]),
            Self::GetGuidance => None,
            Self::GetServerStatus => None,
            Self::GetSession => Some(&[1]),
            Self::GetWorkspace => Some(&[1]),
            Self::ListBatches => Some(&[1]),
            Self::ListFiles => Some(&[1]),
            Self::ListTokens => None,
            Self::ListTools => None,
            Self::ListWorkspaces => None,
            Self::PrepareBatch => Some(&[1]),
            Self::ReadFile => Some(&[1]),
            Self::ReadFiles => Some(&[1]),
            Self::RejectBatch => Some(&[1]),
            Self::ReportBatch => Some(&[1]),
            Self::ReportLocalBatch => Some(&[1]),
            Self::RetainWorkspace => Some(&[1]),
            Self::RevertBatch => Some(&[1]),
            Self::RevokeToken => None,
            Self::SearchFiles => Some(&[1]),
            Self::Serve => Some(&[1, 1]),
            Self::SetSessionMode => Some(&[1]),
            Self::StatFiles => Some(&[1]),
            Self::StatUpload => Some(&[1]),
            Self::SubmitBatch => Some(&[1]),
            Self::UploadBlob => Some(&[1, 1]),
            Self::WatchBatch => Some(&[1]),
            Self::WatchWorkspace => Some(&[1]),
        }
    }
}
