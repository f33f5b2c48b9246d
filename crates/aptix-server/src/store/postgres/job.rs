//! Writes that wait for the committer.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use aptix_model::id::WorkspaceId;
use tokio::sync::oneshot;

use super::rows::{Decided, Needs, Put, Rows, Stop};
use crate::store::StoreError;
use crate::waited::Waited;

/// A write: what it needs, what it decides, and who waits for its answer.
pub(super) trait Work: Send + Sync {
    /// Names the rows that it decides by.
    fn needs(&self, needs: &mut Needs);

    /// Decides, and keeps its answer until that is written. It may be asked again, by other rows.
    ///
    /// # Errors
    /// When it needs more rows, or another group.
    fn decide(&mut self, rows: &Rows) -> Result<Vec<Put>, Stop>;

    /// Answers the caller.
    fn answer(self: Box<Self>, written: Result<(), StoreError>);
}

/// A write that waits.
pub(super) struct Job {
    pub(super) workspace: WorkspaceId,
    /// About how many bytes it writes.
    pub(super) bytes: usize,
    pub(super) work: Box<dyn Work>,
    /// Who counts the groups that it waits for, and how many had ended when it was asked for.
    pub(super) waited: Option<(Arc<Waited>, u64)>,
}

impl Job {
    /// A write of this kind; its answer comes when its changes are durable.
    pub(super) fn new<I: Send + Sync + 'static, T: Send + Sync + 'static>(
        workspace: WorkspaceId,
        bytes: usize,
        input: I,
        needs: fn(&I, &mut Needs),
        decide: fn(&I, &Rows) -> Decided<T>,
    ) -> (Self, oneshot::Receiver<Result<T, StoreError>>) {
        let (reply, answer) = oneshot::channel();
        let work = Box::new(Write { input, needs, decide, decided: None, reply });
        (Self { workspace, bytes, work, waited: None }, answer)
    }
}

struct Write<I, T> {
    input: I,
    needs: fn(&I, &mut Needs),
    decide: fn(&I, &Rows) -> Decided<T>,
    decided: Option<Result<T, StoreError>>,
    reply: oneshot::Sender<Result<T, StoreError>>,
}

impl<I: Send + Sync, T: Send + Sync> Work for Write<I, T> {
    fn needs(&self, needs: &mut Needs) {
        (self.needs)(&self.input, needs);
    }

    fn decide(&mut self, rows: &Rows) -> Result<Vec<Put>, Stop> {
        // A panic ends this write, and not the committer.
        let decided = catch_unwind(AssertUnwindSafe(|| (self.decide)(&self.input, rows))).unwrap_or_else(|_| {
            let cause = "it panicked, which is a defect of aptix-server".to_owned();
            Err(StoreError::Failed { action: "decide on a write", cause }.into())
        });
        let (answer, puts) = match decided {
            Ok((answer, puts)) => (Ok(answer), puts),
            Err(Stop::Error(error)) => (Err(error), Vec::new()),
            Err(stop) => return Err(stop),
        };
        self.decided = Some(answer);
        Ok(puts)
    }

    fn answer(self: Box<Self>, written: Result<(), StoreError>) {
        let undecided = || Err(StoreError::Failed { action: "decide on a write", cause: "it was given up".to_owned() });
        let Self { decided, reply, .. } = *self;
        let answer = written.and_then(|()| decided.unwrap_or_else(undecided));
        // The caller may have gone; what was written stays.
        let _ = reply.send(answer);
    }
}
