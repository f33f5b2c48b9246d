//! A batch that was refused, as it is kept: its author's words, what it asked for in the manner of a diff, and its failures.

use aptix_model::actor::{Actor, ActorKind};
use aptix_model::batch_event::{EventFacts, EventKind};
use aptix_model::failure::Failure;
use aptix_model::id::BatchId;
use aptix_model::record::UnixMillis;
use aptix_model::state::BatchState;
use serde::{Deserialize, Serialize};

use super::kept_failure::KeptFailure;

/// What stands for what a batch asked for where that is not kept.
const TOO_MUCH: &str = "what the batch asked for is too much to be kept\n";

/// A batch that was refused.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RefusedBatch {
    /// Its id on this machine.
    #[serde(with = "batch_id")]
    pub id: BatchId,
    /// When it was refused, in milliseconds since 1970.
    pub(super) time: u64,
    /// What the age clock showed then, in milliseconds.
    pub(super) age: u64,
    /// The names of the states of the roots of its workspace.
    pub(super) roots: Vec<String>,
    /// Who had it tried; earlier versions did not keep it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    by: Option<KeptActor>,
    /// What the batch was for, in its author's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Its author's name for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The files that it names, in its order.
    pub files: Vec<RefusedFile>,
    failures: Vec<KeptFailure>,
}

/// Who had a batch tried.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeptActor {
    kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
}

/// What a batch asked of a file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RefusedFile {
    /// Its path as it was shown when the batch was refused.
    pub path: String,
    /// Its lower-case key, if the root is known.
    pub doc_path: Option<String>,
    /// Where it was to go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved_to: Option<String>,
    /// What the entry was for, in its author's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Its author's name for the entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// What the author calls its changes.
    pub changes: Vec<ChangeWords>,
    /// What was to become of it, in the manner of a diff: of the file, then of each change.
    pub parts: Vec<String>,
}

/// What its author calls a change.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChangeWords {
    /// A name for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// What it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

impl RefusedBatch {
    /// A batch of this id that this actor had tried, with its label and key.
    #[must_use]
    pub fn new(
        (id, by): (BatchId, &Actor),
        (label, key): (Option<String>, Option<String>),
        files: Vec<RefusedFile>,
        failures: &[Failure],
    ) -> Self {
        let failures = failures.iter().map(KeptFailure::from).collect();
        let by = Some(KeptActor { kind: by.kind.word().to_owned(), name: by.name.clone() });
        Self { id, time: 0, age: 0, roots: Vec::new(), by, label, key, files, failures }
    }

    /// Its only step: that it was refused, when, and who had it tried. Absent where an earlier version kept the batch.
    #[must_use]
    pub fn step(&self) -> Option<EventFacts> {
        let KeptActor { kind, name } = self.by.as_ref()?;
        let actor = Actor { kind: ActorKind::from_word(kind)?, name: name.clone() };
        let at = UnixMillis(self.time);
        Some(EventFacts { kind: EventKind::Local, state: BatchState::Failed, at, actor, reason: None })
    }

    /// When it was refused, in milliseconds since 1970.
    #[must_use]
    pub const fn unix_ms(&self) -> u64 {
        self.time
    }

    /// Why it was refused.
    #[must_use]
    pub fn failures(&self) -> Vec<Failure> {
        self.failures.iter().map(Failure::from).collect()
    }

    /// Whether a failure names the file at a position.
    #[must_use]
    pub fn is_blamed(&self, file: usize) -> bool {
        self.failures.iter().any(|failure| failure.is_about(file, None))
    }

    /// One file of it alone, or one change of that file, with their failures.
    #[must_use]
    pub fn part(mut self, file: usize, change: Option<usize>) -> Self {
        self.files = self.files.into_iter().skip(file).take(1).collect();
        self.failures.retain(|failure| failure.is_about(file, change));
        if let (Some(change), Some(file)) = (change, self.files.first_mut()) {
            file.changes = file.changes.drain(..).skip(change).take(1).collect();
            let parts = std::mem::take(&mut file.parts).into_iter().enumerate();
            let parts = parts.filter(|(at, _)| *at == 0 || *at == change + 1);
            file.parts = parts.map(|(_, part)| part).collect();
        }
        self
    }

    /// Keeps what it was called and why it was refused, and nothing of any content.
    pub(super) fn leave_out_content(&mut self) {
        for file in &mut self.files {
            file.parts = vec![TOO_MUCH.to_owned()];
        }
        self.failures.iter_mut().for_each(KeptFailure::leave_out_content);
    }
}

/// An id as text.
mod batch_id {
    use aptix_model::id::BatchId;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(id: &BatchId, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(id)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BatchId, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_that_an_earlier_version_kept_names_nobody() {
        let person = Actor { kind: ActorKind::Person, name: Some("ann".to_owned()) };
        let id = "018f6d2e-7c1a-7b3e-9d55-0123456789ab".parse().unwrap();
        let batch = RefusedBatch::new((id, &person), (None, None), Vec::new(), &[]);
        let mut kept = serde_json::to_value(&batch).unwrap();
        assert_eq!(serde_json::from_value::<RefusedBatch>(kept.clone()).unwrap().step().unwrap().actor, person);
        kept.as_object_mut().unwrap().remove("by").unwrap();
        assert_eq!(serde_json::from_value::<RefusedBatch>(kept.clone()).unwrap().step(), None);
        kept["by"] = serde_json::json!({ "kind": "LATER" });
        assert_eq!(serde_json::from_value::<RefusedBatch>(kept).unwrap().step(), None);
    }
}
