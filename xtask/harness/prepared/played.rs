//! Plays a history on both: the processes, and the reference. The first difference is what is wrong.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Result;
use aptix_model::wire::v1;
use aptix_model::wire::v1::prepare_batch_request::Content;

use crate::history::{Approval, Edit, FILES, Process, Step};
use crate::moment::pass;
use crate::reference::{Batch, State, World, created, text};
use crate::stage::Stage;

/// How long a batch lives that expires at once: its time is over when the history goes on.
const SHORT: Duration = Duration::from_millis(1);

/// Plays a history; the first difference, if there is one.
pub(crate) fn play(approval: Approval, steps: &[Step]) -> Result<Option<String>> {
    let (stage, world) = (Stage::new(approval)?, World::new(approval));
    let mut play = Play { stage, world, ids: BTreeMap::new(), requests: BTreeMap::new(), reviewers: BTreeMap::new() };
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
    /// Who approved each batch, as the first answer had it.
    reviewers: BTreeMap<usize, String>,
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
                let owner = self.owner(batch);
                self.apply(batch, owner, &[format!("one-{batch}"), format!("other-{batch}")])
            }
            Step::ApplyAndKill { batch, process } => {
                let (owner, call) = (self.owner(batch), format!("killed-{batch}"));
                let Some(id) = self.ids.get(&batch).cloned() else { return Ok(None) };
                let answers = self.stage.apply(&id, owner, std::slice::from_ref(&call))?;
                self.stage.restart(process)?;
                self.applied(batch, owner, &[call], answers)
            }
            Step::Approve { batch, reviewer } => self.approve(batch, &[format!("reviewer{reviewer}")], None),
            Step::ApproveTwice { batch } => {
                self.approve(batch, &["reviewer0".to_owned(), "reviewer1".to_owned()], None)
            }
            Step::ApproveAndKill { batch, process } => self.approve(batch, &["reviewer0".to_owned()], Some(process)),
            Step::Revert { batch, of } => self.revert(&[batch], of, None),
            Step::RevertTwice { batch, of } => self.revert(&[batch, batch + 1], of, None),
            Step::RevertAndKill { batch, of, process } => self.revert(&[batch], of, Some(process)),
            Step::RevertAgain { batch } => self.revert_again(batch),
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

    /// Who prepared a batch; any owner of one that nobody did.
    fn owner(&self, batch: usize) -> usize {
        self.world.batches.get(&batch).and_then(|batch| batch.owner).unwrap_or_default()
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
        let batch = Batch::prepared(owner, edit, short, seen.clone());
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
        let expected = self.world.prepare(number, batch, (owner, replaces));
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
        self.settled(number)
    }

    /// One or more reviewers approve a batch, at once.
    fn approve(&mut self, number: usize, reviewers: &[String], kills: Option<Process>) -> Outcome {
        let Some(id) = self.ids.get(&number).cloned() else { return Ok(None) };
        let answers = self.stage.approve(&id, reviewers)?;
        if let Some(process) = kills {
            self.stage.restart(process)?;
        }
        // Every answer names the reviewer who was the first; at once, it may be any of them.
        let is_one = |name: &&String| reviewers.contains(name);
        let first = answers.iter().flatten().find(is_one).or(reviewers.first()).cloned().unwrap_or_default();
        for (reviewer, found) in reviewers.iter().zip(answers) {
            let expected = self.world.approve(number).map_err(str::to_owned);
            let expected = expected.map(|_| self.reviewers.entry(number).or_insert_with(|| first.clone()).clone());
            if let Some(why) = compare(found, expected) {
                return Ok(Some(format!("{reviewer}: {why}")));
            }
        }
        self.settled(number)
    }

    /// One or more batches are to take another one back, at once.
    fn revert(&mut self, numbers: &[usize], of: usize, kills: Option<Process>) -> Outcome {
        let Some(id) = self.ids.get(&of).cloned() else { return Ok(None) };
        let requests: Vec<_> = numbers.iter().map(|number| format!("revert-{number}")).collect();
        let answers = self.stage.revert(&id, &requests)?;
        if let Some(process) = kills {
            self.stage.restart(process)?;
        }
        // The one that was carried out first comes first, and one that was refused last.
        let mut found = Vec::new();
        for (number, answer) in numbers.iter().zip(answers) {
            if let Ok(id) = &answer {
                self.ids.insert(*number, id.clone());
            }
            let is_applied = match &answer {
                Ok(id) => self.stage.settled(id)?.state() == v1::BatchState::Applied,
                Err(_) => false,
            };
            found.push((!is_applied, answer.is_err(), *number, answer.map(drop)));
        }
        found.sort_by_key(|(is_second, is_refused, ..)| (*is_second, *is_refused));
        for (.., number, found) in found {
            let expected = self.world.revert(number, of);
            // A call that came second may have been stored before the first was carried out: its batch fails then.
            let expected = match (&found, expected) {
                (Ok(()), Err("ALREADY_APPLIED")) if numbers.len() > 1 => Ok(self.world.revert_in_vain(number, of)),
                (_, expected) => expected,
            };
            if let Some(why) = compare(found, expected.map(drop).map_err(str::to_owned)).or(self.settled(number)?) {
                return Ok(Some(format!("batch {number}: {why}")));
            }
        }
        Ok(None)
    }

    fn revert_again(&mut self, number: usize) -> Outcome {
        let Some(Edit::Revert { of }) = self.world.batches.get(&number).map(|batch| batch.edit) else {
            return Ok(None);
        };
        let (Some(of), Some(id)) = (self.ids.get(&of).cloned(), self.ids.get(&number).cloned()) else {
            return Ok(None);
        };
        let answers = self.stage.revert(&of, &[format!("revert-{number}")])?;
        Ok(compare(answers, vec![Ok(id)]))
    }

    /// Whether a batch is where it is in the reference, once nothing is about to happen to it.
    fn settled(&self, number: usize) -> Outcome {
        let (Some(id), Some(batch)) = (self.ids.get(&number), self.world.batches.get(&number)) else { return Ok(None) };
        let found = self.stage.settled(id)?.state();
        // The server ends a batch whose time is over when it comes to it.
        let is_over = batch.short && batch.state == State::Prepared && found == v1::BatchState::Expired;
        Ok(compare(found, wire(batch.state)).filter(|_| !is_over))
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
            if let Some(why) = self.settled(*number)? {
                return Ok(Some(format!("at the end batch {number}: {why}")));
            }
            let found = self.stage.settled(id)?;
            let by = self.world.reverted_by(*number).and_then(|by| self.ids.get(&by)).cloned();
            if let Some(why) = compare(found.reverted_by, by.unwrap_or_default()) {
                return Ok(Some(format!("at the end batch {number} is taken back by another: {why}")));
            }
        }
        Ok(None)
    }
}

fn wire(state: State) -> v1::BatchState {
    match state {
        State::Prepared => v1::BatchState::Prepared,
        State::Pending => v1::BatchState::PendingApproval,
        State::Applied => v1::BatchState::Applied,
        State::Failed => v1::BatchState::Failed,
        State::Rejected => v1::BatchState::Rejected,
        State::Cancelled => v1::BatchState::Cancelled,
        State::Expired => v1::BatchState::Expired,
    }
}

/// The document of an edit at the line that was seen.
fn document(number: usize, edit: Edit, seen: &str) -> v1::Document {
    let patch = |file: usize, patch: serde_json::Value| {
        serde_json::json!({ "path": format!("file{file}.txt"), "patches": [patch] }).to_string()
    };
    let text_of = match edit {
        Edit::Replace { file, .. } => {
            patch(file, serde_json::json!({ "operation": "replace", "oldText": seen, "newText": text(number) }))
        }
        Edit::Append { file } => {
            patch(file, serde_json::json!({ "operation": "append_eof", "newText": format!("{}\n", text(number)) }))
        }
        Edit::Create => {
            let content = format!("{}\n", text(number));
            serde_json::json!({ "path": created(number), "content": content }).to_string()
        }
        Edit::Delete { of } => {
            let (name, text) = (created(of), text(of));
            format!(
                "diff --git a/{name} b/{name}\ndeleted file mode 100644\n--- a/{name}\n+++ /dev/null\n@@ -1 +0,0 @@\n-{text}\n"
            )
        }
        Edit::Stale { file } => {
            patch(file, serde_json::json!({ "operation": "replace", "oldText": "no such line", "newText": "x" }))
        }
        Edit::Revert { .. } => String::new(),
    };
    v1::Document { dialect: String::new(), text: text_of.into_bytes().into() }
}
