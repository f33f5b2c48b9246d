//! The codes that a failed creation of a file has, in answers to `workspace_create_file` and in logs (TUL-004 5.3).

use crate::failure::Failure;
use crate::reason::Reason;

/// The code of a defect of the program. Nothing that a caller did has it.
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
        Reason::TooLarge => "TooLarge",
        Reason::HashFailed | Reason::BlobMissing => "HashFailed",
        Reason::Internal => UNHANDLED,
        _ => "WriteFailed",
    }
}

/// The finer word beside the code: the reason, where arguments that are none are called so.
#[must_use]
pub const fn detail(failure: &Failure) -> &'static str {
    match failure.reason {
        Reason::InvalidRequest => "INVALID_ARGUMENTS",
        reason => reason.code(),
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
            assert_eq!(found == UNHANDLED, reason == Reason::Internal, "{reason}: nothing that a caller did");
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
            (Reason::InvalidRequest, "WriteFailed"),
            (Reason::ApprovalRequired, "WriteFailed"),
            (Reason::DeadlineExceeded, "WriteFailed"),
            (Reason::Internal, "UnhandledException"),
        ] {
            assert_eq!(of(&Failure::new(reason, "x")), expected);
        }
        assert_eq!(detail(&Failure::new(Reason::InvalidRequest, "x")), "INVALID_ARGUMENTS");
        assert_eq!(detail(&Failure::new(Reason::ApprovalRequired, "x")), "APPROVAL_REQUIRED");
        let path = Failure::new(Reason::InvalidRequest, "x").field("path");
        assert_eq!((of(&path), detail(&path)), ("InvalidPath", "INVALID_ARGUMENTS"));
    }
}
