//! Writes that are done with all that follows from them, even if their caller goes away meanwhile.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::runtime::Handle;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::cpu_pool::Turnkeeper;
use crate::store::StoreError;

/// Work that its caller polls; should the caller drop it before its end, a task of its own does the rest, in turns of that caller.
pub(super) struct ToTheEnd<F: Future<Output: Send> + Send + 'static> {
    /// Absent while it is polled, and once it has ended.
    work: Option<Pin<Box<F>>>,
    turns: Turnkeeper,
    tasks: TaskTracker,
    runtime: Handle,
    /// Who waits for the tasks waits for this work too.
    _token: TaskTrackerToken,
}

impl<F: Future<Output: Send> + Send + 'static> ToTheEnd<F> {
    /// Work of the call that is worked on here. To be called on the runtime.
    pub(super) fn begin(tasks: &TaskTracker, work: F) -> Self {
        Self {
            work: Some(Box::pin(work)),
            turns: Turnkeeper::here(),
            tasks: tasks.clone(),
            runtime: Handle::current(),
            _token: tasks.token(),
        }
    }
}

impl<F: Future<Output: Send> + Send + 'static> Future for ToTheEnd<F> {
    type Output = Result<F::Output, StoreError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(mut work) = self.work.take() else { return Poll::Pending };
        match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context))) {
            Ok(Poll::Ready(done)) => Poll::Ready(Ok(done)),
            Ok(Poll::Pending) => {
                self.work = Some(work);
                Poll::Pending
            }
            Err(_) => {
                Poll::Ready(Err(StoreError::Failed { action: "finish a write", cause: "it panicked".to_owned() }))
            }
        }
    }
}

impl<F: Future<Output: Send> + Send + 'static> Drop for ToTheEnd<F> {
    fn drop(&mut self) {
        if let Some(work) = self.work.take() {
            let turns = std::mem::take(&mut self.turns);
            self.tasks.spawn_on(async move { turns.run(work).await }, &self.runtime);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::pin::pin;

    use tokio::sync::oneshot;

    use super::*;

    /// Polls work once, which then waits.
    async fn begin(mut work: Pin<&mut impl Future>) {
        let waits = poll_fn(|context| Poll::Ready(work.as_mut().poll(context).is_pending())).await;
        assert!(waits);
    }

    #[tokio::test]
    async fn what_its_caller_drops_is_done_by_a_task_and_waited_for() {
        let tasks = TaskTracker::new();
        tasks.close();
        let ((go, gone), (end, ended)) = (oneshot::channel::<()>(), oneshot::channel());
        let mut work = Box::pin(ToTheEnd::begin(&tasks, async move {
            gone.await.unwrap();
            end.send("done").unwrap();
        }));
        begin(work.as_mut()).await;
        let mut all = pin!(tasks.wait());
        begin(all.as_mut()).await;
        drop(work);
        begin(all.as_mut()).await;
        go.send(()).unwrap();
        assert_eq!(ended.await, Ok("done"));
        all.await;
    }

    #[tokio::test]
    async fn its_caller_learns_what_came_of_it_and_no_task_is_made() {
        let tasks = TaskTracker::new();
        let done = ToTheEnd::begin(&tasks, async { tokio::task::try_id() }).await;
        assert_eq!(done, Ok(tokio::task::try_id()));
        assert_eq!(tasks.len(), 0);
    }

    #[tokio::test]
    async fn work_that_panics_fails_and_is_not_polled_again() {
        let tasks = TaskTracker::new();
        let mut work = ToTheEnd::begin(&tasks, poll_fn(|_| -> Poll<()> { panic!("as it should") }));
        assert!(matches!((&mut work).await, Err(StoreError::Failed { .. })));
        drop(work);
        assert_eq!(tasks.len(), 0);
    }
}
