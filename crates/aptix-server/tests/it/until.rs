//! Waits until something holds.

use std::time::Duration;

use crate::server::SOON;

/// Calls until there is an answer.
pub(crate) async fn until<T>(mut call: impl AsyncFnMut() -> Option<T>) -> T {
    let waited = async {
        loop {
            if let Some(found) = call().await {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(SOON, waited).await.expect("it comes to be in time")
}
