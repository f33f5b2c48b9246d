//! How long a quiet workspace waits beside a noisy one: the slowest of a hundred calls, beside 64 writers of another workspace and
//! alone. The same of a unary echo shows how much of it is the machine's.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;
use tokio::task::JoinSet;

use crate::target::{Target, quantile, slice};

/// Calls of the quiet one in a pass.
const CALLS: usize = 20;
/// Writers of the noisy one.
const NOISY: usize = 64;

/// Measures the server, given its quiet author and its noisy one, and an echo; prints both.
///
/// # Errors
/// When a call fails.
pub(crate) async fn measure(server: (&Target, &Target), echo: &Target, passes: usize) -> Result<()> {
    let of_server = compare(server.0, server.1, passes).await?;
    let of_echo = compare(echo, echo, passes).await?;
    println!("p99 of a quiet workspace: {}; of an echo: {}", text(of_server), text(of_echo));
    Ok(())
}

fn text([alone, beside]: [f64; 2]) -> String {
    let (ratio, alone, beside) = (beside / alone, alone * 1e3, beside * 1e3);
    format!("{alone:.2} ms alone, {beside:.2} ms beside {NOISY} noisy writers ({ratio:.1} times)")
}

/// The 99th percentiles of calls that are made alone, and beside noise.
async fn compare(quiet: &Target, noisy: &Target, passes: usize) -> Result<[f64; 2]> {
    let mut all = [const { Vec::new() }; 2];
    for _ in 0..passes.max(5) {
        for (is_beside, samples) in [false, true].into_iter().zip(&mut all) {
            let over = Arc::new(AtomicBool::new(!is_beside));
            let mut noise = JoinSet::new();
            for writer in 0..NOISY {
                let (over, noisy) = (Arc::clone(&over), noisy.clone());
                noise.spawn(async move {
                    while !over.load(Ordering::Relaxed) {
                        noisy.call(writer, writer).await?;
                    }
                    anyhow::Ok(())
                });
            }
            samples.extend(slice(quiet, 1, CALLS).await?.each);
            over.store(true, Ordering::Relaxed);
            while let Some(ended) = noise.join_next().await {
                ended??;
            }
        }
    }
    Ok(all.map(|samples| quantile(&samples, 0.99)))
}
