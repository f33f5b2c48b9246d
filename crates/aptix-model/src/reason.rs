//! The one catalogue of failures. A code, once published, is never renamed.

mod catalogue;
mod detail;

use self::catalogue::catalogue;

pub use detail::Detail;

catalogue! {
    /// Why something was refused or failed. One reason has one cause; [`Detail`] is the finer word.
    Reason {
        /// The request does not have the shape the protocol or the document format asks for.
        InvalidRequest = "INVALID_REQUEST",
        /// A path is not an acceptable relative path, or leads where no file can be edited.
        InvalidPath = "INVALID_PATH",
        /// Two files on disk or in the batch differ only in case or Unicode normal form.
        AmbiguousPath = "AMBIGUOUS_PATH",
        /// The call has no token, or one that the server does not know or that has ended.
        Unauthenticated = "UNAUTHENTICATED",
        /// What was to be made is there already.
        AlreadyExists = "ALREADY_EXISTS",
        /// The caller's token does not allow this call, or is for another workspace, whether there is such a one or not.
        PermissionDenied = "PERMISSION_DENIED",
        /// Policy forbids touching this file to every caller.
        PolicyDenied = "POLICY_DENIED",
        /// A person has to agree first, and none did.
        ApprovalRequired = "APPROVAL_REQUIRED",
        /// A person looked at the batch and said no, or the agent was started to refuse every batch (`NEVER_APPROVES`).
        Rejected = "REJECTED",
        /// Something is larger than its limit.
        TooLarge = "TOO_LARGE",
        /// A line number does not exist, or a range is no range.
        LineRange = "LINE_RANGE",
        /// Two changes of one file cover the same line.
        LineOverlap = "LINE_OVERLAP",
        /// The changes of a file are not listed top to bottom.
        LineOrder = "LINE_ORDER",
        /// The file is not the version the author saw.
        ShaMismatch = "SHA_MISMATCH",
        /// The lines named as expected are not the lines that are there.
        ExpectedMismatch = "EXPECTED_MISMATCH",
        /// The text to be replaced does not occur in the file.
        TextNotFound = "TEXT_NOT_FOUND",
        /// The text to be replaced occurs in the file more than once.
        TextNotUnique = "TEXT_NOT_UNIQUE",
        /// Two changes of one file take away the same bytes.
        MatchOverlap = "MATCH_OVERLAP",
        /// Finding the place of a change, or what is searched for, would take more work than it is worth.
        MatchBudgetExceeded = "MATCH_BUDGET_EXCEEDED",
        /// A clipboard that text is to come from does not exist in this session.
        ClipboardMissing = "CLIPBOARD_MISSING",
        /// A line to be indented anew does not begin with the prefix that is to be stripped.
        ReindentPrecondition = "REINDENT_PRECONDITION",
        /// A diff is not well-formed.
        PatchMalformed = "PATCH_MALFORMED",
        /// A diff has fewer lines than it announces, or a patch has no end: it was cut off, or the counts of a hunk are wrong.
        PatchTruncated = "PATCH_TRUNCATED",
        /// A diff asks for something that is not done here, such as making a symbolic link.
        PatchUnsupported = "PATCH_UNSUPPORTED",
        /// The file is not the blob that the diff was made from.
        IndexMismatch = "INDEX_MISMATCH",
        /// An answer has no edit in it.
        NoEditFound = "NO_EDIT_FOUND",
        /// New text looks like the wrapping, the notation or a summary of an edit instead of the content of a file.
        SuspectContent = "SUSPECT_CONTENT",
        /// The author says that no safe edit can be made.
        AuthorDeclined = "AUTHOR_DECLINED",
        /// The wanted dialect has no words for the edit.
        NotExpressible = "NOT_EXPRESSIBLE",
        /// The file already has every change of the patch, or the batch is taken back already.
        AlreadyApplied = "ALREADY_APPLIED",
        /// A file that must not exist does.
        FileExists = "FILE_EXISTS",
        /// A file that must exist does not.
        FileMissing = "FILE_MISSING",
        /// Another process wrote the file while the batch was being applied.
        FileChanged = "FILE_CHANGED",
        /// An editor on the workstation holds unsaved text of the file.
        UnsavedBuffer = "UNSAVED_BUFFER",
        /// The file is not text in an encoding that can be edited byte by byte.
        NotText = "NOT_TEXT",
        /// A parent directory could not be made.
        DirectoryCreateFailed = "DIRECTORY_CREATE_FAILED",
        /// The system refused to read a file.
        ReadFailed = "READ_FAILED",
        /// The system refused a write.
        WriteFailed = "WRITE_FAILED",
        /// A person has to look first: an earlier batch stopped half-way, or a root was removed.
        NeedsOperator = "NEEDS_OPERATOR",
        /// Another process holds the workspace.
        WorkspaceBusy = "WORKSPACE_BUSY",
        /// No such batch, file patch, change, workspace or file for this caller.
        NotFound = "NOT_FOUND",
        /// The beginning of an id that several ids have.
        AmbiguousId = "AMBIGUOUS_ID",
        /// The same request id was used before with another payload.
        RequestIdReused = "REQUEST_ID_REUSED",
        /// A batch already ended, and this would end it another way.
        ResultFinal = "RESULT_FINAL",
        /// A prepared edit belongs to another caller.
        WrongOwner = "WRONG_OWNER",
        /// The time in which a prepared edit could be applied is over.
        HunkExpired = "HUNK_EXPIRED",
        /// The state of the batch does not allow this step.
        InvalidState = "INVALID_STATE",
        /// The caller's lease on the workspace is not, or no longer, in force.
        LeaseLost = "LEASE_LOST",
        /// The wanted revisions are no longer kept.
        Compacted = "COMPACTED",
        /// A cursor or page token is of a history that the server does not have: its store was replaced or restored.
        HistoryChanged = "HISTORY_CHANGED",
        /// Uploaded bytes do not have the digest or size they were announced with, or a file is not as it was written.
        HashFailed = "HASH_FAILED",
        /// A referenced blob has not been uploaded.
        BlobMissing = "BLOB_MISSING",
        /// What a call waits for did not come in time.
        DeadlineExceeded = "DEADLINE_EXCEEDED",
        /// A bounded resource is used up; the same call may pass later.
        ResourceExhausted = "RESOURCE_EXHAUSTED",
        /// The caller's token, or the workspace that the call names, uses as much as an operator allows it; the same call passes later.
        OverLimit = "OVER_LIMIT",
        /// The other side could not be reached or gave no answer in time.
        Unavailable = "UNAVAILABLE",
        /// The server does not have the called method, or the compression of its message: one side has another version.
        Unimplemented = "UNIMPLEMENTED",
        /// A person or the system interrupted the command.
        Interrupted = "INTERRUPTED",
        /// A defect in Aptix or its storage; the log has the rest.
        Internal = "INTERNAL",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_upper_snake_and_read_back() {
        for reason in Reason::ALL {
            assert!(
                reason.code().bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
            );
            assert_eq!(Reason::from_code(reason.code()), Some(reason));
        }
        for detail in Detail::ALL {
            assert_eq!(Detail::from_code(detail.code()), Some(detail));
        }
    }
}
