//! What `workspace_create_file` answers (TUL-004 4.3, 5.3).

use aptix_model::failure::Failure;
use aptix_model::reason::Reason;
use aptix_model::report::{FileReport, FileStatus};
use serde::Serialize;

/// Every code that a failed call may have (TUL-004 5.3).
pub(super) const ERROR_CODES: [&str; 7] = [
    "FileExists",
    "InvalidPath",
    "DirectoryCreateFailed",
    "WriteFailed",
    "TooLarge",
    "HashFailed",
    "UnhandledException",
];

/// The answer.
#[derive(Serialize, Debug)]
#[serde(rename_all = "camelCase")]
pub(super) struct Created {
    success: bool,
    message: String,
    path: String,
    size_bytes: u64,
    hash: String,
    created: bool,
    overwritten: bool,
    error_code: Option<&'static str>,
}

impl Created {
    /// Of a file that is as asked for.
    pub(super) fn done(file: &FileReport) -> Self {
        let created = file.status == FileStatus::Created;
        let mut message = if created { "File created.".to_owned() } else { "File overwritten.".to_owned() };
        for warning in &file.warnings {
            message.push_str(&format!(" Warning: {}: {}.", warning.code, warning.message));
        }
        Self {
            success: true,
            message,
            path: file.path.clone(),
            size_bytes: file.written.map_or(0, |written| written.size_bytes),
            hash: file.written.map(|written| written.sha256.to_string()).unwrap_or_default(),
            created,
            overwritten: !created,
            error_code: None,
        }
    }

    /// Of a call that was refused; `path` is the one in the call, as far as it could be read.
    pub(super) fn refused(path: &str, failures: &[Failure]) -> Self {
        let told = failures.iter().map(|failure| match &failure.hint {
            Some(hint) => format!("{failure}; {hint}"),
            None => failure.to_string(),
        });
        Self {
            success: false,
            message: told.collect::<Vec<_>>().join("\n"),
            path: path.to_owned(),
            size_bytes: 0,
            hash: String::new(),
            created: false,
            overwritten: false,
            error_code: Some(failures.first().map_or("UnhandledException", code)),
        }
    }
}

/// The code of a failure.
fn code(failure: &Failure) -> &'static str {
    match failure.reason {
        Reason::FileExists => "FileExists",
        Reason::InvalidPath | Reason::AmbiguousPath | Reason::PolicyDenied => "InvalidPath",
        Reason::InvalidRequest if failure.field.as_deref() == Some("path") => "InvalidPath",
        Reason::DirectoryCreateFailed => "DirectoryCreateFailed",
        Reason::WriteFailed
        | Reason::ReadFailed
        | Reason::FileChanged
        | Reason::WorkspaceBusy
        | Reason::NeedsOperator
        | Reason::ResourceExhausted
        | Reason::ApprovalRequired
        | Reason::Rejected
        | Reason::NotText
        | Reason::SuspectContent => "WriteFailed",
        Reason::TooLarge => "TooLarge",
        Reason::HashFailed => "HashFailed",
        _ => "UnhandledException",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// TUL-004-5.3.4, TUL-004-4.3.10, TUL-004-5.1.4.3: every failure has one of the codes, and those that the text speaks of have theirs.
    #[test]
    fn every_reason_has_one_of_the_codes() {
        for reason in Reason::ALL {
            let found = code(&Failure::new(*reason, "x"));
            assert!(ERROR_CODES.contains(&found), "{reason}: {found}");
        }
        for (reason, expected) in [
            (Reason::FileExists, "FileExists"),
            (Reason::InvalidPath, "InvalidPath"),
            (Reason::PolicyDenied, "InvalidPath"),
            (Reason::DirectoryCreateFailed, "DirectoryCreateFailed"),
            (Reason::WriteFailed, "WriteFailed"),
            (Reason::FileChanged, "WriteFailed"),
            (Reason::TooLarge, "TooLarge"),
            (Reason::HashFailed, "HashFailed"),
            (Reason::Internal, "UnhandledException"),
        ] {
            assert_eq!(code(&Failure::new(reason, "x")), expected);
        }
    }
}
