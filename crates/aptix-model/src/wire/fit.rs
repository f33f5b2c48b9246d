//! Cuts a report, or an answer that holds one, down to what one message may hold: each kind of message leaves out one part
//! after the other, in its own order, until it fits.

use alloc::string::String;
use alloc::vec::Vec;

use prost::Message;

use super::v1;
use crate::limits::MESSAGE_BYTES;
use crate::report::fit::STORED_BYTES;

/// Room for what a message has around a batch.
const AROUND: usize = 1024;

/// Bytes of batches that one message surely carries.
pub const ROOM: usize = MESSAGE_BYTES - AROUND;

/// Bytes of a request that reports a batch, less what the lease adds to it.
pub const SENT_BYTES: usize = MESSAGE_BYTES - 64;

/// Bytes of a batch that one message of a stream carries: streams are many, and their readers may be slow.
const STREAMED_BYTES: usize = 64 << 10;

/// Bytes of a name, and of a reason, beside the batch of an event.
const WORDS_BYTES: usize = 1 << 10;

/// A part that a report can do without.
#[derive(Clone, Copy)]
enum Part {
    Diff,
    Warnings,
    Changes,
    /// All but the first failure, without what that quotes.
    Details,
    Failures,
}

/// A part that an answer with a batch can do without.
#[derive(Clone, Copy)]
enum Step {
    Report(Part),
    /// A part of the report of its plan.
    Planned(Part),
    Places,
    Plan,
    Content,
    Texts,
    Edit,
    /// Whose turn it came from, and its author's name.
    Origin,
}

/// A part that the answer to a submit can do without.
#[derive(Clone, Copy)]
enum Submitted {
    Preview(Part),
    Batch(Step),
    Warnings,
}

/// What a report to the server can do without. Its files stay: the server stores what became of each.
const SENT: [Part; 3] = [Part::Diff, Part::Warnings, Part::Changes];
const STORED: [Part; 1] = [Part::Diff];
/// A prepared batch is stored only if what binds it fits beside its content.
const ANSWERED: [Step; 9] = [
    Step::Report(Part::Diff),
    Step::Planned(Part::Diff),
    Step::Planned(Part::Warnings),
    Step::Places,
    Step::Content,
    Step::Report(Part::Details),
    Step::Texts,
    Step::Report(Part::Failures),
    Step::Plan,
];
const STREAMED: [Step; 8] = [
    Step::Plan,
    Step::Content,
    Step::Report(Part::Diff),
    Step::Report(Part::Details),
    Step::Report(Part::Failures),
    Step::Texts,
    Step::Edit,
    Step::Origin,
];

/// Cuts the report in a request to the server.
///
/// # Errors
/// The bytes of a request that is too large without all it can do without.
pub fn sent(request: &mut v1::ReportBatchRequest) -> Result<(), usize> {
    fit(request, SENT_BYTES, &SENT, |request, part| {
        request.report.iter_mut().for_each(|report| part.leave_out(report))
    });
    let bytes = request.encoded_len();
    if bytes <= SENT_BYTES { Ok(()) } else { Err(bytes) }
}

/// Cuts a report to what a server stores of it.
pub fn stored(report: &mut v1::Report) {
    fit(report, STORED_BYTES, &STORED, |report, part| part.leave_out(report));
}

/// The batch, with as much of it as one message carries.
#[must_use]
pub fn answer(mut batch: v1::Batch) -> v1::Batch {
    batch.content_omitted |= fit(&mut batch, ROOM, &ANSWERED, |batch, step| step.leave_out(batch));
    batch
}

/// The batch, with as much of it as one message of a stream carries.
#[must_use]
pub fn event(mut batch: v1::Batch) -> v1::Batch {
    batch.content_omitted |= fit(&mut batch, STREAMED_BYTES, &STREAMED, |batch, step| step.leave_out(batch));
    batch
}

/// The batch with its steps, with as much of the batch as a message carries beside them.
#[must_use]
pub fn with_steps(mut batch: v1::Batch, steps: Vec<v1::BatchStep>) -> v1::GetBatchResponse {
    make_room(&mut batch, &steps);
    v1::GetBatchResponse { batch: Some(batch), steps }
}

/// The answer about a batch that a person approved, with the step that did.
#[must_use]
pub fn approved(mut batch: v1::Batch, decision: Option<v1::BatchStep>) -> v1::ApproveBatchResponse {
    make_room(&mut batch, decision.as_slice());
    v1::ApproveBatchResponse { batch: Some(batch), decision }
}

/// The answer about a batch that a person rejected, with the step that did.
#[must_use]
pub fn rejected(mut batch: v1::Batch, decision: Option<v1::BatchStep>) -> v1::RejectBatchResponse {
    make_room(&mut batch, decision.as_slice());
    v1::RejectBatchResponse { batch: Some(batch), decision }
}

/// Leaves out of a batch what has no room beside these steps of it.
fn make_room(batch: &mut v1::Batch, steps: &[v1::BatchStep]) {
    let beside: usize = steps.iter().map(|step| step.encoded_len() + 8).sum();
    let room = ROOM.saturating_sub(beside);
    batch.content_omitted |= fit(batch, room, &ANSWERED, |batch, step| step.leave_out(batch));
}

/// Who did it, with as much of the name as an event carries.
#[must_use]
pub fn actor(mut actor: v1::Actor) -> v1::Actor {
    actor.name = words(actor.name);
    actor
}

/// As much of a text as an event carries beside its batch.
#[must_use]
pub fn words(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(WORDS_BYTES));
    text
}

/// As [`event`], of a batch whose content came with an earlier message.
#[must_use]
pub fn later_event(mut batch: v1::Batch) -> v1::Batch {
    Step::Content.leave_out(&mut batch);
    batch.content_omitted = true;
    event(batch)
}

/// The answer to a submit, with as much of it as one message carries: its batch is one that [`answer`] has cut, and its caller
/// has sent the content.
#[must_use]
pub fn submitted(mut answer: v1::SubmitBatchResponse) -> v1::SubmitBatchResponse {
    const PREVIEWED: [Part; 5] = [Part::Diff, Part::Changes, Part::Warnings, Part::Details, Part::Failures];
    let steps = [Submitted::Batch(Step::Content)].into_iter().chain(PREVIEWED.map(Submitted::Preview));
    let steps: Vec<_> = steps.chain([Submitted::Batch(Step::Texts), Submitted::Warnings]).collect();
    fit(&mut answer, ROOM, &steps, |answer, step| match step {
        Submitted::Preview(part) => answer.preview.iter_mut().for_each(|report| part.leave_out(report)),
        Submitted::Batch(step) => answer.batch.iter_mut().for_each(|batch| {
            step.leave_out(batch);
            batch.content_omitted = true;
        }),
        Submitted::Warnings => answer.warnings.clear(),
    });
    answer
}

/// The part of a batch, with as much of it as one message carries.
#[must_use]
pub fn part(mut part: v1::GetChangeResponse) -> v1::GetChangeResponse {
    let steps: [fn(&mut v1::GetChangeResponse); 4] = [
        |part| part.diff.clear(),
        |part| {
            if let Some(file) = &mut part.file_report {
                file.warnings.clear();
                file.changes.clear();
            }
        },
        |part| part.file.iter_mut().for_each(|file| file.action = None),
        |part| part.failures.truncate(1),
    ];
    part.content_omitted |= fit(&mut part, ROOM, &steps, |part, step| step(part));
    part
}

/// Leaves out one part after the other until the message is small enough; answers whether any was.
fn fit<M: Message, S: Copy>(message: &mut M, room: usize, steps: &[S], leave_out: impl Fn(&mut M, S)) -> bool {
    for (done, step) in steps.iter().enumerate() {
        if message.encoded_len() <= room {
            return done > 0;
        }
        leave_out(message, *step);
    }
    true
}

impl Part {
    fn leave_out(self, report: &mut v1::Report) {
        match self {
            Self::Diff => {
                report.diff_omitted |= !report.diff.is_empty();
                report.diff.clear();
            }
            Self::Warnings => {
                report.warnings.clear();
                report.files.iter_mut().for_each(|file| file.warnings.clear());
            }
            Self::Changes => report.files.iter_mut().for_each(|file| file.changes.clear()),
            Self::Details => {
                report.files.clear();
                report.warnings.clear();
                report.failures.truncate(1);
                for failure in &mut report.failures {
                    failure.nearest.clear();
                    failure.next_action = None;
                }
            }
            Self::Failures => report.failures.clear(),
        }
    }
}

impl Step {
    fn leave_out(self, batch: &mut v1::Batch) {
        match (self, &mut batch.edit) {
            (Self::Report(part), _) => batch.report.iter_mut().for_each(|report| part.leave_out(report)),
            (Self::Planned(_) | Self::Places | Self::Plan, _) => {
                let Some(preparation) = &mut batch.preparation else { return };
                let Some(plan) = &mut preparation.plan else { return };
                match self {
                    Self::Planned(part) => plan.report.iter_mut().for_each(|report| part.leave_out(report)),
                    Self::Places => plan.files.iter_mut().for_each(|file| *file = v1::PlannedFile::default()),
                    _ => preparation.plan = None,
                }
            }
            (Self::Edit, edit) => *edit = None,
            (Self::Origin, _) => {
                batch.origin = None;
                batch.author.iter_mut().for_each(|author| author.name.clear());
            }
            (Self::Content, Some(edit)) => {
                // Without its action nothing would tell a quote from an edit of its file.
                edit.files.retain(|file| !matches!(file.action, Some(v1::file_patch::Action::Quote(_))));
                edit.files.iter_mut().for_each(|file| file.action = None);
            }
            (Self::Texts, Some(edit)) => {
                edit.label.clear();
                edit.key.clear();
                for file in &mut edit.files {
                    file.label.clear();
                    file.key.clear();
                }
            }
            (Self::Content | Self::Texts, None) => {}
        }
    }
}
