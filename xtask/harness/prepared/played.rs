//! Plays a history on both: the processes, and the reference. The first difference is what is wrong.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Result;
use aptix_model::wire::v1;
use aptix_model::wire::v1::prepare_batch_request::Content;

use crate::history::{Edit, FILES, Step};
use crate::moment::pass;
use crate::reference::{Batch, State, World, text};
use crate::stage::Stage;

/// How long a batch lives that expires at once: its time is over when the history goes on.
const SHORT: Duration = Duration::from_millis(1);

/// Plays a history; the first difference, if there is one.
pub(crate) fn play(steps: &[Step]) -> Result<Option<String>> {
    let mut play = Play { stage: Stage::new()?, world: World::new(), ids: BTreeMap::new(), requests: BTreeMap::new() };
    for file in 0..FILES {
        play.write(file)?;
    }
    for (number, step) in steps.iter().enumerate() {
        if let Some(why) = play.step(*step)?.or(play.files()?) {
            return Ok(Some(format!("step {number}, {step:?}: {why}")));
        }
    }
    play.states()
}

struct Play {
    stage: Stage,
    world: World,
    /// The id of each batch that was stored.
    ids: BTreeMap<usize, String>,
    requests: BTreeMap<usize, v1::PrepareBatchRequest>,
}

type Outcome = Result<Option<String>>;

/// What is wrong, if the two are not equal.
fn compare<T: PartialEq + std::fmt::Debug>(found: T, expected: T) -> Option<String> {
    (found != expected).then(|| format!("found {found:?}, expected {expected:?}"))
}

impl Play {
    fn step(&mut self, step: Step) -> Outcome {
        match step {
            Step::Prepare { batch, owner, edit, short, replaces } => {
                // What a step left out would have prepared cannot be replaced.
                let replaces = replaces.filter(|other| self.ids.contains_key(other));
                self.prepare(batch, (owner, edit, short), replaces)
            }
            Step::PrepareAgain { batch } => self.prepare_again(batch),
            Step::Apply { batch, owner, call } => self.apply(batch, owner, &[format!("call-{batch}-{owner}-{call}")]),
            Step::ApplyTwice { batch } => {
                let Some(owner) = self.world.batches.get(&batch).map(|batch| batch.owner) else { return Ok(None) };
                self.apply(batch, owner, &[format!("one-{batch}"), format!("other-{batch}")])
            }
            Step::ApplyAndKill { batch, process } => {
                let Some(owner) = self.world.batches.get(&batch).map(|batch| batch.owner) else { return Ok(None) };
                let Some(id) = self.ids.get(&batch).cloned() else { return Ok(None) };
                let call = format!("killed-{batch}");
                let answers = self.stage.apply(&id, owner, std::slice::from_ref(&call))?;
                self.stage.restart(process)?;
                self.applied(batch, owner, &[call], answers)
            }
            Step::Cancel { batch } => self.end(batch, State::Cancelled),
            Step::Reject { batch } => self.end(batch, State::Rejected),
            Step::Outside { file, line } => {
                self.world.change(file, line);
                self.write(file)?;
                Ok(None)
            }
            Step::Restart(process) => self.stage.restart(process).map(|()| None),
        }
    }

    fn write(&self, file: usize) -> Result<()> {
        self.stage.write(&format!("file{file}.txt"), &(self.world.files[file].join("\n") + "\n"))
    }

    fn prepare(
        &mut self,
        number: usize,
        (owner, edit, short): (usize, Edit, bool),
        replaces: Option<usize>,
    ) -> Outcome {
        let seen = self.world.seen(edit);
        let batch = Batch { owner, edit, short, state: State::Prepared, seen: seen.clone(), freed: None };
        let request = v1::PrepareBatchRequest {
            workspace_id: "demo".to_owned(),
            request_id: format!("prepare-{number}"),
            content: Some(Content::Document(document(number, edit, &seen))),
            owner: format!("owner{owner}"),
            time_to_live: short.then(|| SHORT.try_into().unwrap_or_default()),
            existing_batch_id: replaces.and_then(|other| self.ids.get(&other).cloned()).unwrap_or_default(),
            ..v1::PrepareBatchRequest::default()
        };
        let answer = self.stage.prepare(&request)?;
        let found = answer.as_ref().map(|batch| batch.state()).map_err(String::clone);
        let expected = self.world.prepare(number, batch, replaces);
        if short {
            pass(SHORT * 2);
        }
        if let Ok(batch) = answer {
            self.ids.insert(number, batch.batch_id);
            self.requests.insert(number, request);
        }
        Ok(compare(found, expected.map(wire).map_err(str::to_owned)))
    }

    fn prepare_again(&mut self, number: usize) -> Outcome {
        let (Some(request), Some(id)) = (self.requests.get(&number), self.ids.get(&number)) else { return Ok(None) };
        let answer = self.stage.prepare(request)?;
        Ok(compare(answer.map(|batch| batch.batch_id), Ok(id.clone())))
    }

    fn apply(&mut self, number: usize, owner: usize, calls: &[String]) -> Outcome {
        let Some(id) = self.ids.get(&number).cloned() else { return Ok(None) };
        let answers = self.stage.apply(&id, owner, calls)?;
        self.applied(number, owner, calls, answers)
    }

    /// Of calls that were made at once, the reference takes those first that were answered well.
    fn applied(&mut self, number: usize, owner: usize, calls: &[String], found: Vec<Result<(), String>>) -> Outcome {
        let Some(id) = self.ids.get(&number).cloned() else { return Ok(None) };
        let mut calls: Vec<_> = calls.iter().zip(found).collect();
        calls.sort_by_key(|(_, found)| found.is_err());
        let is_one_of_several = calls.len() > 1;
        for (call, found) in calls {
            let expected = self.world.apply(number, owner, call);
            let found = match (found, &expected) {
                // The call that came second may have been answered while the batch was on its way.
                (Err(found), Err("ALREADY_APPLIED")) if is_one_of_several && found == "NOT_PREPARED" => {
                    Err("ALREADY_APPLIED".to_owned())
                }
                (found, _) => found,
            };
            if let Some(why) = compare(found, expected.map(drop).map_err(str::to_owned)) {
                return Ok(Some(format!("{call}: {why}")));
            }
        }
        let expected = self.world.batches.get(&number).map(|batch| wire(batch.state));
        Ok(compare(Some(self.stage.settled(&id)?.state()), expected))
    }

    fn end(&mut self, number: usize, to: State) -> Outcome {
        let Some(id) = self.ids.get(&number).cloned() else { return Ok(None) };
        let found = self.stage.end(&id, to == State::Rejected)?;
        let is_due = self.world.batches.get(&number).is_some_and(|batch| batch.short && batch.state == State::Prepared);
        if is_due && found.is_err() && self.stage.settled(&id)?.state() == v1::BatchState::Expired {
            // The server ended it first.
            self.world.end(number, State::Expired).ok();
            return Ok(None);
        }
        Ok(compare(found, self.world.end(number, to).map(drop).map_err(str::to_owned)))
    }

    /// Whether the files are those of the reference.
    fn files(&self) -> Outcome {
        let lines = self.world.files.iter().enumerate();
        let mut expected: Vec<_> =
            lines.map(|(file, lines)| (format!("file{file}.txt"), lines.join("\n") + "\n")).collect();
        expected.extend(self.world.created.iter().map(|(name, text)| (name.clone(), format!("{text}\n"))));
        expected.sort();
        Ok(compare(self.stage.files()?, expected))
    }

    /// Whether every batch is where it is in the reference.
    fn states(&self) -> Outcome {
        for (number, id) in &self.ids {
            let Some(batch) = self.world.batches.get(number) else { continue };
            let found = self.stage.settled(id)?;
            let is_over = batch.short && batch.state == State::Prepared && found.state() == v1::BatchState::Expired;
            if let Some(why) = compare(found.state(), wire(batch.state)).filter(|_| !is_over) {
                return Ok(Some(format!("at the end batch {number}: {why}")));
            }
        }
        Ok(None)
    }
}

fn wire(state: State) -> v1::BatchState {
    match state {
        State::Prepared => v1::BatchState::Prepared,
        State::Applied => v1::BatchState::Applied,
        State::Failed => v1::BatchState::Failed,
        State::Rejected => v1::BatchState::Rejected,
        State::Cancelled => v1::BatchState::Cancelled,
        State::Expired => v1::BatchState::Expired,
    }
}

/// The document of an edit at the line that was seen.
fn document(number: usize, edit: Edit, seen: &str) -> v1::Document {
    let patch = |file: usize, patch: serde_json::Value| serde_json::json!({ "path": format!("file{file}.txt"), "patches": [patch] });
    let document = match edit {
        Edit::Replace { file, .. } => {
            patch(file, serde_json::json!({ "operation": "replace", "oldText": seen, "newText": text(number) }))
        }
        Edit::Append { file } => {
            patch(file, serde_json::json!({ "operation": "append_eof", "newText": format!("{}\n", text(number)) }))
        }
        Edit::Create => {
            serde_json::json!({ "path": format!("new{number}.txt"), "content": format!("{}\n", text(number)) })
        }
        Edit::Stale { file } => {
            patch(file, serde_json::json!({ "operation": "replace", "oldText": "no such line", "newText": "x" }))
        }
    };
    v1::Document { dialect: String::new(), text: document.to_string().into_bytes().into() }
}
