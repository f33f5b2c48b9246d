//! Many cases, as many at a time as there are processors, and what their workers share.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use anyhow::Result;

/// Works on each case and its number, and stops soon after one fails; the results are in the order of the cases.
///
/// # Errors
/// That of a case that failed.
pub(crate) fn each<T: Sync, R: Send>(cases: &[T], work: impl Fn(usize, &T) -> Result<R> + Sync) -> Result<Vec<R>> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(case) = cases.get(number) else { return Ok(done) };
            let result = work(number, case).inspect_err(|_| next.store(cases.len(), Ordering::Relaxed))?;
            done.push((number, result));
        }
    };
    let count = thread::available_parallelism()?.get();
    let done: Result<Vec<_>> = thread::scope(|scope| {
        let workers: Vec<_> = (0..count).map(|_| scope.spawn(work)).collect();
        workers
            .into_iter()
            .map(|worker| worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    });
    let mut done: Vec<_> = done?.into_iter().flatten().collect();
    done.sort_by_key(|(number, _)| *number);
    Ok(done.into_iter().map(|(_, result)| result).collect())
}

/// Reads or changes what workers share.
pub(crate) fn with<T, R>(shared: &Mutex<T>, work: impl FnOnce(&mut T) -> R) -> R {
    work(&mut shared.lock().unwrap_or_else(PoisonError::into_inner))
}
