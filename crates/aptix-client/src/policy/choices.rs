//! What a policy file chooses, one enum for each key. Where an order is derived, the later of two is the stricter one.

/// Whether batches write at all.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WriteMode {
    /// They do, as far as the rest of the policy lets them.
    Unrestricted,
    /// They do not (REQ-PATCH-009).
    Restricted,
}

/// Whether links are followed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Links {
    /// Those that stay in the root are.
    Follow,
    /// None is.
    Refuse,
}

/// What becomes of an edit of one occurrence where there are several.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Several {
    /// The first one is edited.
    First,
    /// It is refused.
    Refuse,
}

/// Whether a person is asked before a file is deleted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Deletions {
    /// No.
    Allow,
    /// Yes.
    Ask,
}

/// When a server is shown lines and digests of a file that it may read.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Excerpts {
    /// Always.
    Readable,
    /// Once a person has agreed that the batch is compared with the files.
    AfterApproval,
}

/// Whether a server is told of changes that no batch of its own made.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReportLocal {
    /// It is, so that its copies of files are what is on disk.
    On,
    /// It is not.
    Off,
}

/// Whether a server is shown files with more than one name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HardLinks {
    /// It is.
    Allow,
    /// It is not: another name may lead out of the root, or to what it must not read.
    Withhold,
}
