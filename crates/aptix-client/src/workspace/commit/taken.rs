//! What a batch leaves on the clipboards of its session: a part of the record of its commit.

use aptix_engine::planning::clipboards::Clipboards;
use aptix_model::digest::Sha256Digest;
use serde::{Deserialize, Serialize};

/// What a batch leaves on the clipboards of its session, once it is carried out.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Taken {
    /// The name of the session's file.
    pub(crate) session: String,
    /// Seconds since 1970, by which earlier versions went.
    pub(crate) at: u64,
    /// What the age clock showed: by then, what was left alone for too long was gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) age: Option<u64>,
    /// The clipboards that have another text from then on.
    pub(crate) texts: Clipboards,
}

impl Taken {
    /// Whether the file of its session is named as such files are.
    pub(crate) fn is_named(&self) -> bool {
        self.session.parse::<Sha256Digest>().is_ok()
    }
}
