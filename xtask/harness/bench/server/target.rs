//! What writers call, and how long they take: each of them one call after the other, all at once.

use std::time::Instant;

use anyhow::{Context, Result};
use tokio::task::JoinSet;
use tonic::transport::Channel;

use crate::author::{Author, write_file};
use crate::echo;
use crate::raw_log::RawLog;

/// What is called.
#[derive(Clone)]
pub(crate) enum Target {
    /// A server that answers each message with itself.
    Echo(Vec<Channel>),
    /// A log without a server.
    Log(RawLog),
    /// The server.
    Server(Author),
    /// Servers: each writer has an author of its own, one after the other.
    Servers(Vec<Author>),
}

impl Target {
    /// Makes one call.
    pub(crate) async fn call(&self, writer: usize, number: usize) -> Result<()> {
        let request = || write_file("quiet", number as u64);
        match self {
            Self::Echo(channels) => {
                let channel = channels.get(writer % channels.len().max(1)).context("the echo is connected")?;
                echo::call(channel.clone(), request()).await
            }
            Self::Log(log) => log.append(prost::Message::encode_to_vec(&request())).await,
            Self::Server(author) => author.submit(writer).await.map(drop),
            Self::Servers(authors) => {
                let author = authors.get(writer % authors.len().max(1)).context("an author is connected")?;
                author.submit(0).await.map(drop)
            }
        }
    }
}

/// How long calls took.
pub(crate) struct Slice {
    /// Wall seconds of all calls together, divided by their number.
    pub(crate) per_call: f64,
    /// Wall seconds of each call.
    pub(crate) each: Vec<f64>,
}

/// Lets so many writers make so many calls each.
pub(crate) async fn slice(target: &Target, writers: usize, calls: usize) -> Result<Slice> {
    let mut tasks = JoinSet::new();
    let begin = Instant::now();
    for writer in 0..writers {
        let target = target.clone();
        tasks.spawn(async move {
            let mut each = Vec::new();
            for number in 0..calls {
                let begin = Instant::now();
                target.call(writer, number).await?;
                each.push(begin.elapsed().as_secs_f64());
            }
            anyhow::Ok(each)
        });
    }
    let mut each = Vec::new();
    while let Some(done) = tasks.join_next().await {
        each.extend(done??);
    }
    let per_call = begin.elapsed().as_secs_f64() / each.len().max(1) as f64;
    Ok(Slice { per_call, each })
}

/// The value that so large a part of the samples does not exceed.
pub(crate) fn quantile(samples: &[f64], part: f64) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let index = (sorted.len() as f64 * part) as usize;
    sorted.get(index.min(sorted.len().saturating_sub(1))).copied().unwrap_or_default()
}
