//! The codes that a failed creation of a file has, in answers to `workspace_create_file` and in logs (TUL-004 5.3).

use crate::failure::Failure;
use crate::reason::Reason;

/// The code of every failure that has no other.
pub const UNHANDLED: &str = "UnhandledException";

/// Every code.
pub const ALL: [&str; 7] =
    ["FileExists", "InvalidPath", "DirectoryCreateFailed", "WriteFailed", "TooLarge", "HashFailed", UNHANDLED];

/// The code of a failure.
#[must_use]
pub fn of(failure: &Failure) -> &'static str {
    match failure.reason {
        Reason::FileExists => "FileExists",
        Reason::InvalidPath | Reason::AmbiguousPath | Reason::PolicyDenied => "InvalidPath",
        Reason::InvalidRequest if failure.field.as_deref() == Some("path") => "InvalidPath",
        Reason::DirectoryCreateFailed => "DirectoryCreateFailed",
        Reason::WriteFailed
        | Reason::ReadFailed
        | Reason::FileChanged
        | Reason::UnsavedBuffer
        | Reason::WorkspaceBusy
        | Reason::NeedsOperator
        | Reason::ResourceExhausted
        | Reason::ApprovalRequired
        | Reason::Rejected
        | Reason::NotText
        | Reason::SuspectContent => "WriteFailed",
        Reason::TooLarge => "TooLarge",
        Reason::HashFailed => "HashFailed",
        _ => UNHANDLED,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// TUL-004-5.3.4, TUL-004-4.3.10, TUL-004-5.1.4.3, TUL-004-5.1.7.6: every failure has one of the codes, and those that the text speaks of have theirs.
    #[test]
    fn every_reason_has_one_of_the_codes() {
        let codes = [
            "FileExists",
            "InvalidPath",
            "DirectoryCreateFailed",
            "WriteFailed",
            "TooLarge",
            "HashFailed",
            "UnhandledException",
        ];
        assert_eq!(ALL, codes);
        for reason in Reason::ALL {
            let found = of(&Failure::new(reason, "x"));
            assert!(ALL.contains(&found), "{reason}: {found}");
        }
        for (reason, expected) in [
            (Reason::FileExists, "FileExists"),
            (Reason::InvalidPath, "InvalidPath"),
            (Reason::PolicyDenied, "InvalidPath"),
            (Reason::DirectoryCreateFailed, "DirectoryCreateFailed"),
            (Reason::WriteFailed, "WriteFailed"),
            (Reason::FileChanged, "WriteFailed"),
            (Reason::UnsavedBuffer, "WriteFailed"),
            (Reason::TooLarge, "TooLarge"),
            (Reason::HashFailed, "HashFailed"),
            (Reason::Internal, "UnhandledException"),
        ] {
            assert_eq!(of(&Failure::new(reason, "x")), expected);
        }
    }
}
