//! The plain reference: everything that was asked of the server and everything that it acknowledged or showed.

use std::collections::BTreeMap;
use std::fmt;

use aptix_model::wire::v1;
use prost_types::Timestamp;

/// What a finding is about.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum About {
    Batch,
    Report,
    Event,
    Feed,
    Blob,
    Token,
    Audit,
    Retention,
}

impl About {
    pub(crate) const ALL: [Self; 8] =
        [Self::Batch, Self::Report, Self::Event, Self::Feed, Self::Blob, Self::Token, Self::Audit, Self::Retention];
}

/// A difference between the server and the reference.
#[derive(Clone, Debug)]
pub(crate) struct Finding {
    pub(crate) about: About,
    /// Whether a call was refused, as a server may do whose own calls fail.
    pub(crate) is_refusal: bool,
    what: String,
}

impl Finding {
    pub(crate) fn new(about: About, what: impl Into<String>) -> Self {
        Self { about, is_refusal: false, what: what.into() }
    }

    /// That a call is refused which has to be answered.
    pub(crate) fn refusal(about: About, what: impl Into<String>) -> Self {
        Self { about, is_refusal: true, what: what.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.about, self.what)
    }
}

/// SHA-256 in the form that the protocol has.
pub(crate) fn digest(bytes: &[u8]) -> String {
    aptix_engine::digest::sha256(bytes).to_string()
}

/// Everything that the server has to have.
#[derive(Default)]
pub(crate) struct Ledger {
    pub(crate) workspaces: BTreeMap<String, Workspace>,
    /// By name.
    pub(crate) tokens: BTreeMap<String, Token>,
    /// The workspace whose oldest records are removed.
    pub(crate) kept: Kept,
}

/// A workspace as its readers know it.
#[derive(Default)]
pub(crate) struct Workspace {
    /// That of revision 1 first.
    pub(crate) events: Vec<Event>,
    /// By request id.
    pub(crate) sent: BTreeMap<String, Sent>,
    /// Acknowledged blobs by digest.
    pub(crate) blobs: BTreeMap<String, Vec<u8>>,
}

/// One event, as it was shown first.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Event {
    pub(crate) batch: String,
    pub(crate) kind: v1::EventKind,
    pub(crate) state: v1::BatchState,
    pub(crate) time: Option<Timestamp>,
    pub(crate) actor: Option<v1::Actor>,
    pub(crate) reason: String,
    /// The position after it, with the digest of all commits up to it.
    cursor: Option<v1::Cursor>,
}

impl Event {
    pub(crate) fn of(event: &v1::BatchEvent) -> Self {
        Self {
            batch: event.batch.as_ref().map(|batch| batch.batch_id.clone()).unwrap_or_default(),
            kind: event.kind(),
            state: event.state(),
            time: event.time,
            actor: event.actor.clone(),
            reason: event.reason.clone(),
            cursor: event.cursor.clone(),
        }
    }
}

/// A batch that was submitted.
pub(crate) struct Sent {
    pub(crate) request: v1::SubmitBatchRequest,
    /// Text that the stored batch has to contain.
    pub(crate) content: String,
    /// The first acknowledgement.
    pub(crate) answered: Option<v1::Batch>,
    pub(crate) decision: Option<Decision>,
    pub(crate) report: Option<Reported>,
    /// The batch as it was shown first after it had ended.
    pub(crate) ended: Option<v1::Batch>,
    /// Whether it was compared since something was last acknowledged about it.
    pub(crate) is_checked: bool,
}

/// A person's or an author's decision.
#[derive(Clone)]
pub(crate) struct Decision {
    pub(crate) kind: v1::EventKind,
    pub(crate) name: String,
    pub(crate) reason: String,
    pub(crate) is_acknowledged: bool,
}

/// The report of an agent of this harness.
#[derive(Clone)]
pub(crate) struct Reported {
    pub(crate) batch: String,
    pub(crate) report: v1::Report,
    pub(crate) is_acknowledged: bool,
}

/// A token that an operator asked for.
#[derive(Default)]
pub(crate) struct Token {
    /// It and its secret, once that was acknowledged.
    pub(crate) made: Option<(v1::Token, String)>,
    /// Whether its revocation was asked for.
    pub(crate) is_revoked: bool,
    /// It after its revocation was acknowledged.
    pub(crate) ended: Option<v1::Token>,
}

/// What is known of the workspace whose oldest records are removed.
#[derive(Default)]
pub(crate) struct Kept {
    /// By request id.
    pub(crate) batches: BTreeMap<String, KeptBatch>,
    /// Every event that was shown.
    pub(crate) events: BTreeMap<u64, Event>,
    /// The newest revision that an answer named.
    pub(crate) newest: u64,
    /// The oldest event that a removal was said to have left.
    pub(crate) oldest: u64,
}

/// A batch of that workspace.
#[derive(Clone)]
pub(crate) struct KeptBatch {
    pub(crate) request: v1::SubmitBatchRequest,
    /// Its id, once it was acknowledged.
    pub(crate) id: Option<String>,
    /// A revision of it: its last one if `end` says so.
    pub(crate) revision: u64,
    pub(crate) end: End,
    /// Whether a reader found its content removed.
    pub(crate) is_bare: bool,
    /// Whether a reader found it removed.
    pub(crate) is_gone: bool,
}

/// What is known of the end of a batch.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Open,
    /// Its cancellation was asked for, and may be done.
    Asked,
    /// It ended, at a revision that nobody was told.
    Ended,
    /// It ended at its revision.
    EndedAtRevision,
}

impl Workspace {
    /// Compares an event that a reader was sent with what others saw; the first to see it decides.
    pub(crate) fn observe(&mut self, event: &v1::BatchEvent) -> Result<(), Finding> {
        let shown = Event::of(event);
        let revision = event.revision;
        if let Some(damage) = &event.damage {
            return Err(Finding::new(About::Event, format!("revision {revision} is damaged: {}", damage.message)));
        }
        let position = usize::try_from(revision).unwrap_or_default();
        match position.checked_sub(1).and_then(|index| self.events.get(index)) {
            Some(known) if *known == shown => Ok(()),
            Some(known) => {
                let what = format!("revision {revision} was {known:?}, is {shown:?}");
                Err(Finding::new(About::Event, what))
            }
            None if position == self.events.len() + 1 => {
                self.events.push(shown);
                Ok(())
            }
            None => {
                let what = format!("revision {revision} follows {}", self.events.len());
                Err(Finding::new(About::Feed, what))
            }
        }
    }

    /// The events of a batch up to the one that it was read after.
    pub(crate) fn events_of(&self, batch: &v1::Batch) -> impl Iterator<Item = &Event> + use<'_> {
        let (until, id) = (usize::try_from(batch.revision).unwrap_or(usize::MAX), batch.batch_id.clone());
        self.events.iter().take(until).filter(move |event| event.batch == id)
    }
}
