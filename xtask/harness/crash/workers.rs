//! Many cases, as many at a time as there are processors.

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use anyhow::Result;

/// Looks into each case, and stops soon after the first that fails.
///
/// # Errors
/// That of the first case that failed.
pub(crate) fn each<T: Sync>(cases: &[T], look: impl Fn(&T) -> Result<()> + Sync) -> Result<()> {
    let next = AtomicUsize::new(0);
    let found = Mutex::new(Ok(()));
    let work = || {
        while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
            if let Err(error) = look(case) {
                next.store(cases.len(), Ordering::Relaxed);
                let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
                if found.is_ok() {
                    *found = Err(error);
                }
            }
        }
    };
    let helpers = std::thread::available_parallelism().map_or(0, |count| NonZero::get(count) - 1);
    std::thread::scope(|scope| {
        for _ in 0..helpers {
            scope.spawn(work);
        }
        work();
    });
    found.into_inner().unwrap_or_else(PoisonError::into_inner)
}
