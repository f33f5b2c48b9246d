//! A report in bytes: what the outbox keeps until the server has acknowledged it, in the protocol's own form.

use aptix_model::actor::Actor;
use aptix_model::failure::Failure;
use aptix_model::id::{BatchId, WorkspaceId};
use aptix_model::reason::{Detail, Reason};
use aptix_model::report::{self, Report};
use aptix_model::trace_parent::TraceParent;
use aptix_model::wire::fit::{self, SENT_BYTES};
use aptix_model::wire::{id, v1};
use prost::Message;

use super::batches::absent;

/// What the server is owed about one batch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Receipt {
    /// The workspace the batch belongs to.
    pub workspace: WorkspaceId,
    /// The batch.
    pub batch: BatchId,
    /// What became of it.
    pub report: Report,
    /// The person who agreed to it or refused it, if one did.
    pub decided_by: Option<Actor>,
    /// The span of the agent's work on the batch, if that is followed.
    pub traceparent: Option<TraceParent>,
}

impl Receipt {
    /// The receipt without the diff of the report.
    #[must_use]
    pub fn without_diff(&self) -> Self {
        let report = Report { diff: String::new(), diff_omitted: true, ..self.report.clone() };
        Self { report, ..self.clone() }
    }
}

/// Puts a receipt into bytes.
#[must_use]
pub fn encode(receipt: Receipt) -> Vec<u8> {
    message(receipt).encode_to_vec()
}

/// Puts a receipt into bytes that one message carries, without those parts of the report for which there is no room.
///
/// # Errors
/// The names and digests of the files are already too much.
pub fn encode_to_fit(mut receipt: Receipt) -> Result<Vec<u8>, Box<Failure>> {
    report::fit::warnings(&mut receipt.report);
    let mut message = message(receipt);
    fit::sent(&mut message).map_err(|bytes| {
        let message = format!("the report would have {bytes} bytes, at most {SENT_BYTES} can be sent");
        let failure = Failure::new(Reason::TooLarge, message).detail(Detail::File);
        failure.hint("send several smaller batches")
    })?;
    Ok(message.encode_to_vec())
}

/// A receipt as a message, under no lease yet.
pub(super) fn message(receipt: Receipt) -> v1::ReportBatchRequest {
    v1::ReportBatchRequest {
        workspace_id: receipt.workspace.to_string(),
        batch_id: receipt.batch.to_string(),
        lease_epoch: 0,
        report: Some(receipt.report.into()),
        lease_secret: tonic::codegen::Bytes::new(),
        decided_by: receipt.decided_by.map(Into::into),
        traceparent: TraceParent::text(receipt.traceparent),
    }
}

/// Reads back what [`encode`] wrote.
///
/// # Errors
/// Everything that keeps the bytes from being a receipt.
pub fn decode(bytes: &[u8]) -> Result<Receipt, Vec<Failure>> {
    let message = v1::ReportBatchRequest::decode(bytes)
        .map_err(|error| vec![Failure::new(Reason::Internal, format!("the bytes are no receipt: {error}"))])?;
    let report = message.report.ok_or_else(|| vec![absent("report")])?;
    Ok(Receipt {
        workspace: id("workspaceId", &message.workspace_id).map_err(|failure| vec![failure])?,
        batch: id("batchId", &message.batch_id).map_err(|failure| vec![failure])?,
        report: Report::try_from(report)?,
        decided_by: message.decided_by.map(Actor::try_from).transpose().map_err(|failure| vec![failure])?,
        traceparent: TraceParent::parse(&message.traceparent),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use aptix_model::actor::ActorKind;
    use aptix_model::report::Outcome;

    #[test]
    fn a_receipt_reads_back_and_other_bytes_do_not() {
        let report = Report {
            outcome: Outcome::Failed,
            files: Vec::new(),
            failures: vec![Failure::new(Reason::ShaMismatch, "another version").file(0, "a.txt")],
            warnings: Vec::new(),
            diff: String::new(),
            diff_omitted: false,
        };
        let batch = "018f6d2e-7c1a-7b3e-9d55-0123456789ab".parse().unwrap();
        let decided_by = Some(Actor { kind: ActorKind::Person, name: Some("rita".to_owned()) });
        let traceparent = TraceParent::parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
        let receipt = Receipt { workspace: "w".parse().unwrap(), batch, report, decided_by, traceparent };
        assert_eq!(decode(&encode(receipt.clone())), Ok(receipt));
        assert!(decode(b"").is_err());
        assert!(decode(b"\xff\xff\xff").is_err());
    }
}
