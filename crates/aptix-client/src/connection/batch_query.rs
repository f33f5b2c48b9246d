//! Which batches a list is asked for.

use aptix_model::actor::ActorKind;
use aptix_model::record::UnixMillis;
use aptix_model::state::BatchState;
use aptix_model::wire::{self, v1};

/// Which batches a list has: those that fit every field that is set.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct BatchQuery {
    /// In one of these states.
    pub states: Vec<BatchState>,
    /// Of one of these sessions.
    pub sessions: Vec<String>,
    /// That name one of these files, or one below a directory that ends in `/`; each by its lower-case key.
    pub doc_paths: Vec<String>,
    /// By one of these; without a kind by any actor of the name, without a name by any of the kind.
    pub authors: Vec<(Option<ActorKind>, Option<String>)>,
    /// Stored at this time or later.
    pub created_from: Option<UnixMillis>,
    /// Stored before this time.
    pub created_before: Option<UnixMillis>,
}

impl From<&BatchQuery> for v1::BatchFilter {
    fn from(query: &BatchQuery) -> Self {
        let author = |(kind, name): &(Option<ActorKind>, Option<String>)| v1::Actor {
            kind: kind.map_or(v1::ActorKind::Unspecified, Into::into).into(),
            name: name.clone().unwrap_or_default(),
        };
        Self {
            states: query.states.iter().map(|state| v1::BatchState::from(*state).into()).collect(),
            session_ids: query.sessions.clone(),
            doc_paths: query.doc_paths.clone(),
            authors: query.authors.iter().map(author).collect(),
            created_from: query.created_from.map(Into::into),
            created_before: query.created_before.map(Into::into),
        }
    }
}

/// Reads a time as RFC 3339 writes it, such as `2026-03-01` or `2026-03-01T12:00:00Z`.
///
/// # Errors
/// When it is none; the message names what is expected.
pub fn parse_time(text: &str) -> Result<UnixMillis, String> {
    wire::parse_time(text).ok_or_else(|| "expected a time such as 2026-03-01 or 2026-03-01T12:00:00Z".to_owned())
}
